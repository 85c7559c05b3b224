package spool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// rig is an open spool with a receiver of its fresh leases.
type rig struct {
	*Spool
	t      *testing.T
	cfg    Config
	n      int    // of IDs given out by fill
	target string // of fill's events, added to the usual one

	mu        sync.Mutex
	committed []Committed
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	cfg := Defaults()
	cfg.Dir = t.TempDir()
	cfg.MaxBytes = 64 * mib
	for _, c := range change {
		c(&cfg)
	}
	r := &rig{t: t, cfg: cfg}
	r.open()
	t.Cleanup(func() {
		r.close()
		r.check()
	})
	return r
}

// collect makes the rig receive what is committed.
func (r *rig) collect(cfg *Config) {
	cfg.Committed = func(list []Committed) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.committed = append(r.committed, list...)
	}
}

func (r *rig) open() {
	r.t.Helper()
	s, err := Open(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Spool = s
}

func (r *rig) close() {
	r.t.Helper()
	if r.Spool == nil {
		return
	}
	if err := r.Close(context.Background()); err != nil {
		r.t.Errorf("close: %v", err)
	}
	r.Spool = nil
}

func (r *rig) reopen() {
	r.t.Helper()
	r.close()
	r.open()
}

// check holds the closed spool to its invariants.
func (r *rig) check() {
	r.t.Helper()
	report, err := Check(r.cfg.Dir, r.cfg.Keys...)
	if err != nil {
		r.t.Errorf("check: %v", err)
	}
	for _, p := range report.Problems {
		r.t.Errorf("check: %s", p)
	}
}

func event(id, endpoint, body string) *Event {
	return &Event{
		ID: id, Endpoint: endpoint, Method: "POST", Target: endpoint + "/pb?cid=1",
		Headers: []Header{{"Content-Type", "text/plain"}}, Body: []byte(body), AcceptedAt: time.Now(),
	}
}

func (r *rig) append(ev *Event) AppendResult {
	r.t.Helper()
	res, err := r.Append(r.t.Context(), ev)
	if err != nil {
		r.t.Fatalf("append %s: %v", ev.ID, err)
	}
	return res
}

func (r *rig) lease(endpoint string, n int) []*Lease {
	r.t.Helper()
	leases, _, err := r.Lease(endpoint, r.now(), n, 1<<30)
	if err != nil {
		r.t.Fatal(err)
	}
	return leases
}

// finish ends a lease and waits until that is on disk.
func (r *rig) finish(l *Lease, res Result) {
	r.t.Helper()
	done := make(chan error, 1)
	res.Done = func(err error) { done <- err }
	r.Finish(l, res)
	if err := <-done; err != nil {
		r.t.Fatalf("finish %s: %v", l.Event.ID, err)
	}
}

func attempt(l *Lease, status int) *Attempt {
	a := &Attempt{Number: l.Progress.Attempts + 1, StartedAt: time.Now(), Duration: time.Millisecond, StatusCode: status}
	if status >= 300 {
		a.Error = fmt.Sprintf("http_%d", status)
	}
	return a
}

func delivered(l *Lease) Result { return Result{Attempt: attempt(l, 200), Verdict: VerdictDelivered} }

func TestLifeOfAnEvent(t *testing.T) {
	r := newRig(t)
	r.append(event("a", "https://x.example", "hello"))
	r.reopen()
	leases := r.lease("https://x.example", 10)
	if len(leases) != 1 || string(leases[0].Event.Body) != "hello" || leases[0].Fresh {
		t.Fatalf("leases %+v", leases)
	}
	r.finish(leases[0], Result{Attempt: attempt(leases[0], 500), Verdict: VerdictRetry, NextAttempt: r.now()})
	leases = r.lease("https://x.example", 10)
	if len(leases) != 1 || leases[0].Progress.Attempts != 1 {
		t.Fatalf("leases %+v", leases)
	}
	r.finish(leases[0], delivered(leases[0]))
	if got := r.lease("https://x.example", 10); len(got) != 0 {
		t.Fatalf("delivered and leased again: %+v", got)
	}
	v, err := r.Get("a", true)
	if err != nil || v.State != StateDelivered || v.Attempts != 2 || len(v.History) != 2 || v.Body != nil {
		t.Fatalf("view %+v, %v", v, err)
	}
	if err := r.Retry(t.Context(), "a"); !errors.Is(err, ErrDelivered) {
		t.Fatalf("retry: %v", err)
	}
}
