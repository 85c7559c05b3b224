package spool

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"postern/spool/internal/layout"
)

func TestDuplicates(t *testing.T) {
	const a, b = "https://a.example", "https://b.example"
	keyed := func(id, endpoint, key, body string) *Event {
		ev := event(id, endpoint, body)
		ev.IdempotencyKey = key
		return ev
	}
	explicit := func(id, endpoint, body string) *Event {
		ev := event(id, endpoint, body)
		ev.ExplicitID = true
		return ev
	}
	tests := []struct {
		name      string
		first     *Event
		later     time.Duration
		second    *Event
		duplicate bool
		err       error
	}{
		{"same key, same request", keyed("1", a, "k", "x"), 0, keyed("2", a, "k", "x"), true, nil},
		{"same key, other body", keyed("1", a, "k", "x"), 0, keyed("2", a, "k", "y"), false, ErrReused},
		{"same key, other endpoint", keyed("1", a, "k", "x"), 0, keyed("2", b, "k", "x"), false, nil},
		{"same key, after the window", keyed("1", a, "k", "x"), 24 * time.Hour, keyed("2", a, "k", "x"), false, nil},
		{"same key, just within the window", keyed("1", a, "k", "x"), 24*time.Hour - time.Microsecond, keyed("2", a, "k", "x"), true, nil},
		{"no key", event("1", a, "x"), 0, event("2", a, "x"), false, nil},
		{"same ID, same request", explicit("1", a, "x"), 0, explicit("1", a, "x"), true, nil},
		{"same ID, long after", explicit("1", a, "x"), 90 * time.Hour, explicit("1", a, "x"), true, nil},
		{"same ID, other body", explicit("1", a, "x"), 90 * time.Hour, explicit("1", a, "y"), false, ErrReused},
		{"same ID, other endpoint", explicit("1", a, "x"), 0, explicit("1", b, "x"), false, ErrIDTaken},
		{"an ID that looks like a key", keyed("1", a, "k", "x"), 0, explicit("k", a, "x"), false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now().Truncate(time.Microsecond)
			r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
			r.append(tt.first)
			r.reopen()
			now = now.Add(tt.later)
			res, err := r.Append(t.Context(), tt.second)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			want := AppendResult{ID: tt.second.ID, Endpoint: tt.second.Endpoint, State: StatePending}
			if tt.duplicate {
				want = AppendResult{ID: tt.first.ID, Endpoint: tt.first.Endpoint, State: StatePending, Duplicate: true}
			}
			if res != want {
				t.Errorf("got %+v, want %+v", res, want)
			}
		})
	}
}

// TestDuplicateState follows one key through the life of its event.
func TestDuplicateState(t *testing.T) {
	r := newRig(t)
	ask := func(want State) {
		t.Helper()
		ev := event("again", "https://a.example", "x")
		ev.IdempotencyKey = "k"
		if res := r.append(ev); res.State != want || res.ID != "first" || !res.Duplicate {
			t.Errorf("got %+v, want state %s", res, want)
		}
	}
	first := event("first", "https://a.example", "x")
	first.IdempotencyKey = "k"
	r.append(first)
	ask(StatePending)
	l := r.lease("https://a.example", 1)[0]
	ask(StateInFlight)
	r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: time.Now().Add(time.Hour)})
	ask(StateFailed)
	if err := r.Retry(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	l = r.lease("https://a.example", 1)[0]
	r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
	ask(StateDeadLetter)
	if err := r.Retry(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	l = r.lease("https://a.example", 1)[0]
	r.finish(l, delivered(l))
	ask(StateDelivered)
	if err := r.Delete(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	ask(StateDelivered) // the key is remembered when the event is gone
}

// TestKeysGoWithTheEvent: an event that ended without being delivered, and is gone, is accepted when it is sent again.
func TestKeysGoWithTheEvent(t *testing.T) {
	type world struct {
		*rig
		now time.Time
	}
	die := func(w *world) {
		l := w.lease(endpointA, 1)[0]
		w.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
	}
	deliver := func(w *world) {
		l := w.lease(endpointA, 1)[0]
		w.finish(l, delivered(l))
	}
	tests := map[string]struct {
		end       func(w *world)
		duplicate bool
	}{
		"deleted, never tried": {func(w *world) { w.must(w.Delete(t.Context(), "1")) }, false},
		"deleted, waiting for a retry": {func(w *world) {
			l := w.lease(endpointA, 1)[0]
			w.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: w.now})
			w.must(w.Delete(t.Context(), "1"))
		}, false},
		"dead letter, deleted":   {func(w *world) { die(w); w.must(w.DeleteDead(t.Context(), "1")) }, false},
		"delivered":              {deliver, true},
		"delivered, and deleted": {func(w *world) { deliver(w); w.must(w.Delete(t.Context(), "1")) }, true},
		"dead letter, past its retention": {func(w *world) {
			die(w)
			w.now = w.now.Add(2 * time.Hour)
			w.must(w.do(func(t *txn) error { return sweepOp{w.Spool}.apply(t) }))
		}, false},
		"set aside": {func(w *world) {
			w.must(w.do(func(t *txn) error {
				rec := t.get(layout.Events, layout.SeqKey(1))
				t.put(layout.Events, layout.SeqKey(1), make([]byte, len(rec)))
				return nil
			}))
			w.lease(endpointA, 1)
			w.must(w.do(func(*txn) error { return nil })) // after what the lease has set aside
		}, false},
	}
	for name, tt := range tests {
		for _, explicit := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, explicit ID %v", name, explicit), func(t *testing.T) {
				w := &world{now: time.Now().Truncate(time.Microsecond)}
				w.rig = newRig(t, func(c *Config) {
					c.Now, c.DeadLetterRetention = func() time.Time { return w.now }, time.Hour
				})
				send := func(id string) AppendResult {
					ev := event(id, endpointA, "x")
					ev.AcceptedAt = w.now
					if ev.ExplicitID = explicit; explicit {
						ev.ID = "1"
					} else {
						ev.IdempotencyKey = "k"
						ev.Headers = append(ev.Headers, Header{"Idempotency-Key", "k"})
					}
					return w.append(ev)
				}
				send("1")
				tt.end(w)
				if res := send("2"); res.Duplicate != tt.duplicate || tt.duplicate && res.State != StateDelivered {
					t.Errorf("sent again: %+v, want duplicate %v", res, tt.duplicate)
				}
				if res := send("3"); !res.Duplicate {
					t.Errorf("sent a third time: %+v", res)
				}
			})
		}
	}
}

// TestKeyPassedOn: a key that another event has by now is not forgotten with the first one.
func TestKeyPassedOn(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	send := func(id string) AppendResult {
		ev := event(id, endpointA, "x")
		ev.IdempotencyKey, ev.Headers = "k", []Header{{"idempotency-key", "k"}}
		return r.append(ev)
	}
	send("1")
	now = now.Add(25 * time.Hour)
	send("2")
	r.must(r.Delete(t.Context(), "1"))
	if res := send("3"); !res.Duplicate || res.ID != "2" {
		t.Errorf("sent again: %+v, want a duplicate of 2", res)
	}
}

// TestKeysOfTheLost: what a salvage could not find is accepted when it is sent again.
func TestKeysOfTheLost(t *testing.T) {
	r := newRig(t)
	send := func(id, key string) AppendResult {
		ev := event(id, endpointA, "x")
		ev.IdempotencyKey = key
		return r.append(ev)
	}
	send("found", "k1")
	send("lost", "k2")
	r.must(r.do(func(t *txn) error {
		t.del(layout.Events, layout.SeqKey(2))
		return nil
	}))
	_, err := rebuild(r.store.update, true)
	r.must(err)
	r.must(r.load())
	if res := send("again", "k1"); !res.Duplicate {
		t.Errorf("what was found: %+v", res)
	}
	if res := send("again", "k2"); res.Duplicate {
		t.Errorf("what was lost: %+v", res)
	}
}

func TestTwinsAtOnce(t *testing.T) {
	r := newRig(t)
	const n = 64
	results := make([]AppendResult, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			ev := event(string(rune('A'+i)), "https://a.example", "x")
			ev.IdempotencyKey = "k"
			res, err := r.Append(t.Context(), ev)
			if err != nil {
				t.Error(err)
			}
			results[i] = res
		})
	}
	wg.Wait()
	fresh := 0
	for _, res := range results {
		if !res.Duplicate {
			fresh++
		}
		if res.ID != results[0].ID {
			t.Errorf("two first events: %s and %s", res.ID, results[0].ID)
		}
	}
	if fresh != 1 {
		t.Errorf("%d were accepted", fresh)
	}
}
