package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Admin is a running Postern's admin API.
type Admin struct{ *conn }

// NewAdmin prepares a client; nothing is connected yet. An error means that the address or the token file is wrong.
func NewAdmin(cfg Config) (*Admin, error) {
	c, err := dial(cfg, DefaultAdmin)
	if err != nil {
		return nil, err
	}
	return &Admin{c}, nil
}

func (a *Admin) call(ctx context.Context, method, path string, body any) (answer, error) {
	reader, err := jsonBody(body)
	if err != nil {
		return answer{}, err
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, reader)
	if err != nil {
		return answer{}, errors.New("the request cannot be built from these arguments")
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.do(r)
}

func get[T any](ctx context.Context, a *Admin, path string, query url.Values) (Reply[T], error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := a.call(ctx, http.MethodGet, "/api/v1/"+path, nil)
	if err != nil {
		return Reply[T]{}, err
	}
	return decode[T](got)
}

func send[T any](ctx context.Context, a *Admin, method, path string, body any) (Reply[T], error) {
	limit := callTimeout
	if body != nil {
		limit = bulkTimeout // only replay and purge have a body
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, err := a.call(ctx, method, "/api/v1/"+path, body)
	if err != nil {
		return Reply[T]{}, err
	}
	return decode[T](got)
}

// Probe asks /healthz or /readyz and returns the status with the text that came with it. Where the listener lets nobody
// ask without a token, or by this name, that is an error and no answer of the probe's.
func (a *Admin) Probe(ctx context.Context, path string) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := a.call(ctx, http.MethodGet, path, nil)
	if err == nil && (got.status == http.StatusUnauthorized || got.status == http.StatusForbidden) {
		err = refusal(got)
	}
	return got.status, got.body, err
}

// Status asks for the one object that sums everything up.
func (a *Admin) Status(ctx context.Context) (Reply[Status], error) {
	return get[Status](ctx, a, "status", nil)
}

// SpoolKeys asks which keys the spool's records are encrypted with.
func (a *Admin) SpoolKeys(ctx context.Context) (Reply[SpoolKeys], error) {
	return get[SpoolKeys](ctx, a, "spool/keys", nil)
}

// Events lists events, newest first.
func (a *Admin) Events(ctx context.Context, f EventFilter) (Reply[EventPage], error) {
	return get[EventPage](ctx, a, "events", f.values())
}

// Event shows one event; reveal adds target, headers, body and the kept answer, which the server logs.
func (a *Admin) Event(ctx context.Context, id string, reveal bool) (Reply[Event], error) {
	var query url.Values
	if reveal {
		query = url.Values{"reveal": {"1"}}
	}
	return get[Event](ctx, a, "events/"+segment(id), query)
}

// RetryEvent makes an event due now, with a new budget.
func (a *Admin) RetryEvent(ctx context.Context, id string) (Reply[json.RawMessage], error) {
	return send[json.RawMessage](ctx, a, http.MethodPost, "events/"+segment(id)+"/retry", nil)
}

// DeleteEvent drops an event.
func (a *Admin) DeleteEvent(ctx context.Context, id string) (Reply[json.RawMessage], error) {
	return send[json.RawMessage](ctx, a, http.MethodDelete, "events/"+segment(id), nil)
}

// Endpoints lists every endpoint that is configured or has events.
func (a *Admin) Endpoints(ctx context.Context) (Reply[EndpointList], error) {
	return get[EndpointList](ctx, a, "endpoints", nil)
}

// Activity asks for the last hour, minute by minute.
func (a *Admin) Activity(ctx context.Context) (Reply[Activity], error) {
	return get[Activity](ctx, a, "activity", nil)
}

// Latency asks which endpoints are getting slower.
func (a *Admin) Latency(ctx context.Context) (Reply[LatencyList], error) {
	return get[LatencyList](ctx, a, "latency", url.Values{"hours": {"1"}})
}

// Endpoint shows one endpoint.
func (a *Admin) Endpoint(ctx context.Context, name string) (Reply[Endpoint], error) {
	return get[Endpoint](ctx, a, "endpoints/"+segment(name), nil)
}

// ActOnEndpoint pauses, resumes or resets an endpoint; action is the API's word.
func (a *Admin) ActOnEndpoint(ctx context.Context, name, action string) (Reply[json.RawMessage], error) {
	return send[json.RawMessage](ctx, a, http.MethodPost, "endpoints/"+segment(name)+"/"+action, nil)
}

// DeadLetters lists dead letters, newest first.
func (a *Admin) DeadLetters(ctx context.Context, f LetterFilter, limit int, cursor string) (Reply[LetterPage], error) {
	query := f.values()
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return get[LetterPage](ctx, a, "dead-letters", query)
}

// Analysis sums up the dead letters of the last hours per endpoint.
func (a *Admin) Analysis(ctx context.Context, hours int) (Reply[AnalysisReport], error) {
	return get[AnalysisReport](ctx, a, "dead-letters/analysis", url.Values{"hours": {strconv.Itoa(hours)}})
}

// Replay makes the selected dead letters due again.
func (a *Admin) Replay(ctx context.Context, b Bulk) (Reply[BulkResult], error) {
	return send[BulkResult](ctx, a, http.MethodPost, "dead-letters/replay", b)
}

// ReplayProgress asks how far a paced replay is.
func (a *Admin) ReplayProgress(ctx context.Context, id string) (Reply[PacedReplay], error) {
	return get[PacedReplay](ctx, a, "dead-letters/replays/"+segment(id), nil)
}

// StopReplay ends a paced replay; what it has not replayed stays a dead letter.
func (a *Admin) StopReplay(ctx context.Context, id string) (Reply[PacedReplay], error) {
	return send[PacedReplay](ctx, a, http.MethodDelete, "dead-letters/replays/"+segment(id), nil)
}

// Purge drops the selected dead letters for good.
func (a *Admin) Purge(ctx context.Context, b Bulk) (Reply[BulkResult], error) {
	return send[BulkResult](ctx, a, http.MethodPost, "dead-letters/purge", b)
}

// SyncRefused lists the rows that the central Postgres refused, oldest first.
func (a *Admin) SyncRefused(ctx context.Context, limit int) (Reply[RefusedList], error) {
	return get[RefusedList](ctx, a, "sync/refused", url.Values{"limit": {strconv.Itoa(limit)}})
}

// SyncRetry has all of them sent again.
func (a *Admin) SyncRetry(ctx context.Context) (Reply[SyncRetried], error) {
	return send[SyncRetried](ctx, a, http.MethodPost, "sync/retry", nil)
}

// segment makes a name one segment of a path. A name of dots alone, which an event ID may be, would be read as the path's
// own dots (RFC 3986, section 5.2.4) if they stood there as they are.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
