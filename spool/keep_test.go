package spool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/spool/internal/layout"
)

// clock is a time that a test sets.
type clock struct{ us atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.us.Store(time.Now().UnixMicro())
	return c
}

func (c *clock) now() time.Time       { return time.UnixMicro(c.us.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.us.Add(d.Microseconds()) }
func (c *clock) use(cfg *Config)      { cfg.Now = c.now }
func (r *rig) sweepNow()              { r.t.Helper(); r.must(r.do(sweepOp{r.Spool}.apply)) }
func (r *rig) must(err error)         { r.t.Helper(); r.mustBe(err, nil) }
func (r *rig) mustBe(err, want error) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Fatalf("error %v, want %v", err, want)
	}
}

func TestRetention(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use, func(cfg *Config) { cfg.Outbox = true })
	for _, id := range []string{"delivered", "dead", "waiting"} {
		ev := event(id, endpointA, "x")
		ev.IdempotencyKey, ev.AcceptedAt = id, c.now()
		r.append(ev)
	}
	leases := r.lease(endpointA, 2)
	r.finish(leases[0], delivered(leases[0]))
	r.finish(leases[1], Result{Attempt: attempt(leases[1], 404), Verdict: VerdictDead, Reason: ReasonPermanent})

	there := func(want ...string) {
		t.Helper()
		r.sweepNow()
		if got := allPages(t, r.Spool, Query{}); got != fmt.Sprint(want)[1:len(fmt.Sprint(want))-1] {
			t.Errorf("after %v: %q, want %q", c.now(), got, want)
		}
	}
	c.pass(24*time.Hour - time.Second)
	there("waiting", "dead", "delivered")
	if r.counters.idemBytes == 0 {
		t.Error("the keys are forgotten")
	}
	c.pass(2 * time.Second)
	there("waiting", "dead")
	if r.counters.idemBytes != 0 {
		t.Error("the keys are remembered for ever")
	}
	c.pass(719 * time.Hour)
	there("waiting")
	rows, _, err := r.Outbox(10)
	r.must(err)
	if last := rows[len(rows)-1]; len(rows) != 6 || last.EventID != "dead" || !last.Deleted || last.Version != 3 || last.DeadReason != ReasonPermanent || last.Endpoint != endpointA {
		t.Errorf("the central store is told by %d rows, the last one %+v", len(rows), last)
	}
	if got := r.Endpoints(); len(got) != 1 || got[0].Pending != 1 || got[0].DeadLetter != 0 {
		t.Errorf("endpoints: %+v", got)
	}
	r.must(r.Delete(t.Context(), "waiting"))
	c.pass(2 * time.Hour)
	there()
	if got := r.Endpoints(); len(got) != 0 {
		t.Errorf("an endpoint without anything stays: %+v", got)
	}
}

func TestLastHour(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use)
	for i := range 3 {
		ev := event(fmt.Sprint(i), endpointA, "x")
		ev.AcceptedAt = c.now()
		r.append(ev)
		l := r.lease(endpointA, 1)[0]
		if i == 0 {
			r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
		} else {
			r.finish(l, delivered(l))
		}
		c.pass(25 * time.Minute)
	}
	r.reopen()
	want := HourStats{Delivered: 2, Duration: 2 * time.Millisecond} // the failure was 75 minutes ago
	if got := r.Stats().LastHour; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	list := r.Minutes()
	var sum HourStats
	for i, m := range list {
		sum = sum.plus(m.HourStats)
		if i > 0 && m.Start.Sub(list[i-1].Start) != time.Minute {
			t.Errorf("minute %d begins at %v, the one before at %v", i, m.Start, list[i-1].Start)
		}
	}
	if last := list[59]; sum != want || last.Start.After(c.now()) || c.now().Sub(last.Start) >= time.Minute || list[34].Delivered != 1 {
		t.Errorf("minutes: %+v", list)
	}
	c.pass(2 * time.Hour)
	if got := r.Stats().LastHour; got != (HourStats{}) {
		t.Errorf("two hours later: %+v", got)
	}
}

func TestEndpointStates(t *testing.T) {
	r := newRig(t)
	save := func(endpoint, state string) {
		t.Helper()
		done := make(chan error, 1)
		r.SaveEndpointState(endpoint, []byte(state), func(err error) { done <- err })
		r.must(<-done)
	}
	save("a", "one")
	save("b", "two")
	save("a", "three")
	save("b", "")
	r.append(event("e", endpointA, "x"))
	l := r.lease(endpointA, 1)[0]
	res := delivered(l)
	res.EndpointState = []byte("with the result")
	r.finish(l, res)
	r.reopen()
	want := map[string][]byte{"a": []byte("three"), endpointA: []byte("with the result")}
	if got := r.EndpointStates(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestStateOutlivesItsEndpoint: a pause is remembered however long nothing comes for the endpoint; the rest is forgotten.
func TestStateOutlivesItsEndpoint(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use, func(cfg *Config) { cfg.DeliveredRetention = time.Minute })
	const endpointB = "https://b.example"
	for _, endpoint := range []string{endpointA, endpointB} {
		ev := event(endpoint, endpoint, "x")
		ev.AcceptedAt = c.now()
		r.append(ev)
		l := r.lease(endpoint, 1)[0]
		res := delivered(l)
		res.EndpointState = []byte("paused")
		r.finish(l, res)
	}
	done := make(chan error, 1)
	r.SaveEndpointState(endpointB, nil, func(err error) { done <- err })
	r.must(<-done)
	c.pass(2 * time.Hour)
	r.sweepNow() // the summaries
	c.pass(2 * time.Hour)
	r.sweepNow() // the endpoints
	r.reopen()
	if got := r.Endpoints(); len(got) != 0 {
		t.Errorf("endpoints without anything: %+v", got)
	}
	if got := r.EndpointStates(); len(got) != 1 || string(got[endpointA]) != "paused" {
		t.Errorf("states: %q", got)
	}
	r.append(event("new", endpointA, "x"))
	if c := r.Counts(endpointA); c.Pending != 1 {
		t.Errorf("counts: %+v", c)
	}
}

func TestSamples(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		r.append(event(fmt.Sprint(i), endpointA, "x"))
	}
	start := time.Now().Add(-time.Minute)
	for i, l := range r.lease(endpointA, 4) {
		switch i {
		case 0:
			r.finish(l, delivered(l))
		case 1:
			r.finish(l, Result{Attempt: attempt(l, 404), Verdict: VerdictDead, Reason: ReasonPermanent})
		case 2:
			r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictRetry, NextAttempt: time.Now().Add(time.Hour)})
		}
	}
	got := map[int]int{}
	r.must(r.Samples(start, func(s Sample) bool {
		if s.Endpoint != endpointA || s.Duration != time.Millisecond {
			t.Errorf("sample %+v", s)
		}
		got[s.StatusCode]++
		return true
	}))
	if want := map[int]int{200: 1, 404: 1, 503: 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("samples by status: %v", got)
	}
	r.must(r.Samples(time.Now().Add(time.Hour), func(s Sample) bool { t.Errorf("too old: %+v", s); return true }))
}

func TestClosedSpool(t *testing.T) {
	r := newRig(t)
	r.append(event("a", endpointA, "x"))
	l := r.lease(endpointA, 1)[0]
	s := r.Spool
	r.must(s.Close(context.Background()))
	r.must(s.Close(context.Background()))
	_, err := s.Append(t.Context(), event("b", endpointA, "x"))
	r.mustBe(err, ErrClosed)
	r.mustBe(s.Retry(t.Context(), "a"), ErrClosed)
	done := make(chan error, 2)
	s.Finish(l, Result{Verdict: VerdictDelivered, Done: func(err error) { done <- err }})
	r.mustBe(<-done, ErrClosed)
	s.SaveEndpointState("a", []byte("x"), func(err error) { done <- err })
	r.mustBe(<-done, ErrClosed)
}

func TestInstanceStays(t *testing.T) {
	r := newRig(t)
	id := r.InstanceID()
	r.reopen()
	if id == "" || r.InstanceID() != id {
		t.Errorf("instance %q became %q", id, r.InstanceID())
	}
}

func TestConfigIsChecked(t *testing.T) {
	tests := map[string]func(*Config){
		"spool.dir":                   func(c *Config) { c.Dir = "" },
		"spool.max_bytes":             func(c *Config) { c.MaxBytes = 1000 },
		"spool.max_event_bytes":       func(c *Config) { c.MaxEventBytes = c.MaxBytes },
		"spool.max_endpoint_share":    func(c *Config) { c.MaxEndpointShare = 1.5 },
		"spool.history_max_bytes":     func(c *Config) { c.HistoryMaxBytes = -1 },
		"spool.dead_letter_retention": func(c *Config) { c.DeadLetterRetention = 0 },
	}
	good := Defaults()
	good.Dir = "x"
	if err := good.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	for name, spoil := range tests {
		cfg := good
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLostCounts: an open that finds the counts damaged makes them anew.
func TestLostCounts(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		r.append(event(fmt.Sprint(i), endpointA, "x"))
	}
	for _, l := range r.lease(endpointA, 5) {
		r.finish(l, delivered(l))
	}
	r.must(r.do(func(tx *txn) error {
		tx.dirty = true
		r.must(tx.tx.Bucket(layout.Endpoints.Name()).Put([]byte(endpointA), []byte("garbage")))
		return nil
	}))
	r.reopen()
	if c := r.Counts(endpointA); c.Pending != 15 {
		t.Errorf("counts: %+v", c)
	}
	if n := len(r.drain(endpointA)); n != 15 {
		t.Errorf("%d delivered", n)
	}
}

// TestCloseGivesUp: a disk that never comes back holds up Close no longer than its context lasts.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.append(event("a", endpointA, "x"))
		l := r.lease(endpointA, 1)[0]
		f := breakDisk(r.Spool)
		f.fail.Store(true)
		done := make(chan error, 1)
		res := delivered(l)
		res.Done = func(err error) { done <- err }
		r.Finish(l, res)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_ = r.Close(ctx) // its last commit fails as well
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("closed after %v", took)
		}
		r.mustBe(<-done, ErrClosed)
		r.open()
		if got := r.lease(endpointA, 1); len(got) != 1 {
			t.Errorf("the event whose result is lost: %+v", got)
		}
	})
}

// TestTooManyKeys: remembered keys never fill the spool.
func TestTooManyKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxBytes, c.MaxEventBytes = 2*mib, 1000 })
	r.store.cur.db.NoSync = true
	for i := range 2500 {
		ev := event(fmt.Sprint(i), endpointA, "x")
		ev.IdempotencyKey = fmt.Sprint(i)
		r.append(ev)
		if i%500 == 499 {
			r.drain(endpointA)
			r.sweepNow()
		}
	}
	if n, limit := r.counters.idemBytes, r.cfg.dedupeLimit(); n > limit || n < limit/2 {
		t.Errorf("%d bytes of keys, at most %d", n, limit)
	}
	ev := event("again", endpointA, "x")
	ev.IdempotencyKey = "2499"
	if res := r.append(ev); !res.Duplicate {
		t.Error("the newest key is forgotten")
	}
}
