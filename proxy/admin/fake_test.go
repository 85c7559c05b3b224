package admin_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/admin"
	"postern/proxy/guard"
	"postern/spool"
)

// fakeSpool keeps events in memory and judges a query as the real one does.
type fakeSpool struct {
	mu     sync.Mutex // guards everything below
	stats  spool.Stats
	views  []spool.View // in order of acceptance
	fail   error        // of the next change
	calls  []string     // changes that were made, as "retry ID"
	change func()       // called in every change, before it is made, with mu held
	stall  func()       // called before every change, without mu: it may wait
}

func (f *fakeSpool) Stats() spool.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

func (f *fakeSpool) Get(id string, payload bool) (spool.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.index(id)
	if i < 0 {
		return spool.View{}, spool.ErrNotFound
	}
	v := f.views[i]
	if !payload || v.State == spool.StateDelivered {
		v.Body, v.Headers = nil, nil
	}
	return v, nil
}

func (f *fakeSpool) index(id string) int {
	return slices.IndexFunc(f.views, func(v spool.View) bool { return v.ID == id })
}

func (f *fakeSpool) List(q spool.Query) (spool.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return spool.Page{}, f.fail
	}
	skip := 0
	if q.Cursor != "" {
		var err error
		if skip, err = strconv.Atoi(q.Cursor); err != nil {
			return spool.Page{}, fmt.Errorf("list: %w", spool.ErrCursor)
		}
	}
	var page spool.Page
	for _, v := range slices.Backward(f.views) {
		if !selects(q, v) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if len(page.Events) == q.Limit {
			start, _ := strconv.Atoi(cmp.Or(q.Cursor, "0"))
			page.Next = strconv.Itoa(start + q.Limit)
			break
		}
		v.Body, v.Headers = nil, nil
		page.Events = append(page.Events, v)
	}
	return page, nil
}

func selects(q spool.Query, v spool.View) bool {
	at := v.AcceptedAt
	if v.State == spool.StateDeadLetter {
		at = v.DeadAt
	}
	var last spool.Attempt
	if n := len(v.History); n > 0 {
		last = v.History[n-1]
	}
	return (q.State == 0 || v.State == q.State) &&
		(q.Endpoint == "" || v.Endpoint == q.Endpoint) &&
		(q.Status == 0 || last.StatusCode == q.Status) &&
		(q.Error == "" || last.Error == q.Error) &&
		!at.Before(q.Since) && (q.Until.IsZero() || at.Before(q.Until))
}

func (f *fakeSpool) DeadLetters(q spool.Query, yield func(spool.View) bool) error {
	f.mu.Lock()
	views := slices.Clone(f.views)
	f.mu.Unlock()
	q.State = spool.StateDeadLetter
	for _, v := range views {
		v.Body, v.Headers = nil, nil
		if selects(q, v) && !yield(v) {
			break
		}
	}
	return nil
}

func (f *fakeSpool) Retry(ctx context.Context, id string) error {
	return f.alter(ctx, "retry", id, func(i int) { f.views[i].State, f.views[i].Charged = spool.StatePending, 0 })
}

func (f *fakeSpool) Delete(ctx context.Context, id string) error {
	return f.alter(ctx, "delete", id, func(i int) { f.views = slices.Delete(f.views, i, i+1) })
}

func (f *fakeSpool) RetryDead(ctx context.Context, id string) error {
	return f.alter(ctx, "retry dead", id, func(i int) { f.views[i].State, f.views[i].Charged = spool.StatePending, 0 })
}

func (f *fakeSpool) DeleteDead(ctx context.Context, id string) error {
	return f.alter(ctx, "delete dead", id, func(i int) { f.views = slices.Delete(f.views, i, i+1) })
}

func (f *fakeSpool) alter(ctx context.Context, verb, id string, do func(i int)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.stall != nil {
		f.stall()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.change != nil {
		f.change()
	}
	i := f.index(id)
	switch {
	case f.fail != nil:
		return f.fail
	case i < 0:
		return spool.ErrNotFound
	case strings.HasSuffix(verb, "dead") && f.views[i].State != spool.StateDeadLetter:
		return spool.ErrNotDead
	case f.views[i].State == spool.StateInFlight:
		return spool.ErrBusy
	case f.views[i].State == spool.StateDelivered && verb == "retry":
		return spool.ErrDelivered
	}
	f.calls = append(f.calls, verb+" "+id)
	do(i)
	return nil
}

func (f *fakeSpool) made() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// fakeEndpoints holds the states of endpoints.
type fakeEndpoints struct {
	views []admin.EndpointView
	fail  error
	calls []string
}

func (f *fakeEndpoints) List() []admin.EndpointView { return slices.Clone(f.views) }

func (f *fakeEndpoints) Get(name string) (admin.EndpointView, bool) {
	for _, view := range f.views {
		if view.Name == name {
			return view, true
		}
	}
	return admin.EndpointView{}, false
}

func (f *fakeEndpoints) Pause(_ context.Context, name string) error  { return f.act("pause", name) }
func (f *fakeEndpoints) Resume(_ context.Context, name string) error { return f.act("resume", name) }
func (f *fakeEndpoints) Reset(_ context.Context, name string) error  { return f.act("reset", name) }

func (f *fakeEndpoints) act(verb, name string) error {
	if f.fail == nil {
		f.calls = append(f.calls, verb+" "+name)
	}
	return f.fail
}

type fakeMetrics struct{ err error }

func (f fakeMetrics) WritePrometheus(w io.Writer) error {
	_, _ = io.WriteString(w, "postern_accepted_total{endpoint=\"partner-a\"} 1\n")
	return f.err
}

// rig is a handler with everything around it.
type rig struct {
	t         *testing.T
	spool     *fakeSpool
	endpoints *fakeEndpoints
	log       *bytes.Buffer
	level     slog.LevelVar
	parts     admin.Parts
	handler   *admin.Handler
}

// newRig makes a handler over the events and endpoints of data_test.go; adjust may change its parts.
func newRig(t *testing.T, adjust ...func(*admin.Parts)) *rig {
	t.Helper()
	r := &rig{t: t, spool: someSpool(), endpoints: someEndpoints(), log: new(bytes.Buffer)}
	r.parts = admin.Parts{
		Spool:      r.spool,
		Endpoints:  r.endpoints,
		Metrics:    fakeMetrics{},
		Guard:      guard.New(guard.Config{Listen: []string{"127.0.0.1:8090"}}),
		Logger:     slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: &r.level})),
		Policies:   policies,
		InstanceID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		Version:    "1.2.3",
	}
	for _, f := range adjust {
		f(&r.parts)
	}
	r.handler = admin.New(r.parts)
	t.Cleanup(r.handler.Close)
	return r
}

// do sends a request as a program beside Postern would, with header fields given as "Name: value".
func (r *rig) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	return r.doCtx(r.t.Context(), method, path, body, headers...)
}

func (r *rig) doCtx(ctx context.Context, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	req.Host = "localhost:8090"
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

// want insists on a status and on the JSON of a body, which has no blanks in its goldens here.
func (r *rig) want(w *httptest.ResponseRecorder, status int, body string) {
	r.t.Helper()
	if w.Code != status {
		r.t.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	if got := strings.TrimSpace(w.Body.String()); got != body {
		r.t.Errorf("body\n got %s\nwant %s", got, body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		r.t.Errorf("Content-Type %s", got)
	}
}

// refused insists on a problem document with that status whose detail has all of says.
func (r *rig) refused(w *httptest.ResponseRecorder, status int, says ...string) {
	r.t.Helper()
	if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" {
		r.t.Fatalf("status %d, %s, want a problem %d: %s", w.Code, w.Header().Get("Content-Type"), status, w.Body)
	}
	for _, word := range says {
		if !strings.Contains(w.Body.String(), word) {
			r.t.Errorf("the answer does not say %q: %s", word, w.Body)
		}
	}
}

func policies(endpoint string) (admin.Policy, bool) {
	switch {
	case endpoint == "partner-a":
		return admin.Policy{URL: "https://partner.example/postback", MaxAttempts: 5}, true
	case strings.Contains(endpoint, "://"):
		return admin.Policy{MaxAttempts: 5}, true
	}
	return admin.Policy{}, false
}

var at = func(hour, minute int) time.Time { return time.Date(1999, 12, 31, hour, minute, 0, 0, time.UTC) }

var _ http.Handler = (*admin.Handler)(nil)
