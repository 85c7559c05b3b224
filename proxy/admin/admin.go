// Package admin is the face that people and their tools look at: probes, metrics, the JSON API under /api/v1 and a
// plain start page (contract section 5).
//
// It promises that no list shows a query, user info, a header value or a body, that only ?reveal=1 does and is logged,
// that a page of another site can neither read nor act (package guard is asked before anything else), and that a
// request which is not understood is refused with a problem document that says what is allowed. It leaves out how
// things are kept and decided: it asks its Parts, which package app joins. It holds no state but that of the paced
// replays that it runs.
//
// Beyond the contract's table there are these resources. GET stream sends what GET status, endpoints, activity and
// dead-letters/replays answer as server-sent events of those names, each when it has changed, looked at once a second
// for all who watch together; it ends at shutdown. GET activity has the last hour minute by minute; GET latency and GET
// endpoints/{name}/latency have p50 and p95 by the half hour, with a judgement whether the endpoint is getting slower.
// Replay and purge take ids beside the contract's filters. A replay with a rate runs in the background, answers 202 with an
// ID, and shows its progress under GET dead-letters/replays and GET dead-letters/replays/{id}; DELETE on the latter
// stops it. And rows that the central Postgres refused are listed by GET sync/refused; POST sync/retry has them sent again.
// Outside the API there is /debug/pprof/, for those who work on Postern itself; it answers only where that is asked for.
package admin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"postern/proxy/guard"
	"postern/spool"
)

// Store reads the spool; *spool.Spool is one.
type Store interface {
	Stats() spool.Stats
	Get(id string, payload bool) (spool.View, error)
	List(q spool.Query) (spool.Page, error)
}

// Letters reads dead letters in bulk, oldest first and without payloads; *spool.Spool is one.
type Letters interface {
	DeadLetters(q spool.Query, yield func(spool.View) bool) error
}

// Changes are what a person may do to an event; *spool.Spool is one. RetryDead and DeleteDead look and act in one
// step, and answer spool.ErrNotDead for an event that is no dead letter (any more).
type Changes interface {
	Retry(ctx context.Context, id string) error
	Delete(ctx context.Context, id string) error
	RetryDead(ctx context.Context, id string) error
	DeleteDead(ctx context.Context, id string) error
}

// Spool is all that is asked of the spool.
type Spool interface {
	Store
	Letters
	Changes
}

// EndpointStates shows endpoints.
type EndpointStates interface {
	List() []EndpointView
	Get(name string) (EndpointView, bool)
}

// EndpointControls are what a person may do to an endpoint. They return when the change is on disk.
type EndpointControls interface {
	Pause(ctx context.Context, name string) error
	Resume(ctx context.Context, name string) error
	Reset(ctx context.Context, name string) error
}

// Endpoints is all that is asked about endpoints.
type Endpoints interface {
	EndpointStates
	EndpointControls
}

// Metrics writes the Prometheus page; *telemetry.Metrics is one.
type Metrics interface {
	WritePrometheus(w io.Writer) error
}

// Policy is what the configuration says of an endpoint, as far as lists of events show it.
type Policy struct {
	URL         string // of a configured endpoint, without query and user info
	MaxAttempts int
}

// Answers yields the attempts that got an answer since then, for the suggestion of a limit.
type Answers func(since time.Time, yield func(endpoint string, at time.Time, statusCode int) bool) error

// Refused are rows for the central store that it refused and that were set apart; *spool.Spool is one.
type Refused interface {
	Refused(limit int) (rows []spool.RefusedRow, total int, err error)
	RetryRefused() (n int, err error)
}

// Keys tells how far the spool is with its keys; *spool.Spool does.
type Keys interface {
	Keys() spool.KeyStatus
}

// Parts are what the API shows and acts upon. Spool, Endpoints, Metrics, Guard and Logger are needed.
type Parts struct {
	Spool     Spool
	Endpoints Endpoints
	Metrics   Metrics
	Guard     *guard.Guard
	Logger    *slog.Logger
	// Ready gives the reasons why /readyz should say no, each a sentence; nil or none means ready.
	Ready func() []string
	// Policies finds an endpoint's policy; ok is false for one that left the configuration. Nil knows none.
	Policies func(endpoint string) (p Policy, ok bool)
	// Answers may be nil: then the analysis suggests no limits.
	Answers Answers
	// Sync is the object status shows as sync; nil shows that there is none.
	Sync func() any
	// Refused are the rows that the central store refused; nil where there is no sync.
	Refused Refused
	// Keys are the spool's; nil shows that nothing is encrypted.
	Keys Keys
	// Profiles tells whether /debug/pprof/ answers, asked at each request; nil means that it does not.
	Profiles func() bool
	// Minutes are the spool's, and Latency the percentiles by the half hour; without them their calls answer with none.
	Minutes Minutes
	Latency Latency
	// Page serves / and all below /ui/, without a token: it must hold nothing that needs one. Nil serves a plain page.
	Page http.Handler
	// InstanceID and Version are shown as they are.
	InstanceID, Version string
}

// Handler serves the admin listener.
type Handler struct {
	parts     Parts
	mux       *http.ServeMux
	replays   *replays
	watchers  watchers
	latencies latencies
	ctx       context.Context // ends with Close, and all bulk work with it
	cancel    context.CancelFunc
}

// New makes the handler. Close ends what it runs in the background.
func New(parts Parts) *Handler {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Handler{parts: parts, mux: http.NewServeMux(), replays: newReplays(), ctx: ctx, cancel: cancel}
	h.watchers.read = h.lookAround
	h.routes()
	return h
}

// Close stops streams, paced replays and bulk calls, and waits for the paced ones; events that were not reached stay dead
// letters.
func (h *Handler) Close() {
	h.cancel()
	h.replays.wait()
	h.watchers.wait()
}

// routes is the whole of the API. Endpoint names hold slashes and go by a way of their own, see serveEndpoint.
func (h *Handler) routes() {
	probes(h.mux, h.parts.Ready, h.parts.Metrics)
	h.mux.HandleFunc("GET /{$}", startPage)

	h.mux.Handle("GET "+api+"status", h.call(h.status))
	h.mux.Handle("GET "+api+"activity", h.call(h.activity))
	h.mux.Handle("GET "+api+"latency", h.call(h.latency))
	h.mux.HandleFunc("GET "+api+"stream", h.stream)
	h.mux.Handle("GET "+api+"events", h.call(h.listEvents))
	h.mux.Handle("GET "+api+"events/{id}", h.call(h.showEvent))
	h.mux.Handle("POST "+api+"events/{id}/retry", h.call(h.retryEvent))
	h.mux.Handle("DELETE "+api+"events/{id}", h.call(h.deleteEvent))
	h.mux.Handle("GET "+api+"endpoints", h.call(h.listEndpoints))
	h.mux.Handle("GET "+api+"dead-letters", h.call(h.listLetters))
	h.mux.Handle("GET "+api+"dead-letters/analysis", unhurried(h.call(h.analysis)))
	h.mux.Handle("POST "+api+"dead-letters/replay", unhurried(h.call(h.replay)))
	h.mux.Handle("POST "+api+"dead-letters/purge", unhurried(h.call(h.purge)))
	h.mux.Handle("GET "+api+"dead-letters/replays", h.call(h.listReplays))
	h.mux.Handle("GET "+api+"dead-letters/replays/{id}", h.call(h.showReplay))
	h.mux.Handle("DELETE "+api+"dead-letters/replays/{id}", h.call(h.stopReplay))
	h.mux.Handle("GET "+api+"spool/keys", h.call(h.showKeys))
	h.mux.Handle("GET "+api+"sync/refused", h.call(h.listRefused))
	h.mux.Handle("POST "+api+"sync/retry", h.call(h.retryRefused))

	h.profiles()
}

// api is where the JSON lives.
const api = "/api/v1/"

// pages is where the files of the page are.
const pages = "/ui/"
