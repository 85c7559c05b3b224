package spool

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndpointsAreSorted: also after some came and went.
func TestEndpointsAreSorted(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use, func(cfg *Config) { cfg.DeliveredRetention = 0 })
	names := func() (list []string) {
		for _, e := range r.Endpoints() {
			list = append(list, fmt.Sprint(e.Endpoint, e.Pending))
		}
		return list
	}
	add := func(id, endpoint string) {
		ev := event(id, endpoint, "x")
		ev.AcceptedAt = c.now()
		r.append(ev)
	}
	steps := []struct {
		do   func()
		want string
	}{
		{func() {}, "[]"},
		{func() { add("1", "m") }, "[m1]"},
		{func() { add("2", "z"); add("3", "a") }, "[a1 m1 z1]"},
		{func() { add("4", "m") }, "[a1 m2 z1]"},
		{func() { r.must(r.Delete(t.Context(), "2")) }, "[a1 m2 z0]"},
		{func() { c.pass(2 * time.Hour); r.sweepNow() }, "[a1 m2]"},
		{func() { r.reopen() }, "[a1 m2]"},
		{func() { add("5", "k") }, "[a1 k1 m2]"},
	}
	for i, step := range steps {
		step.do()
		if got := fmt.Sprint(names()); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

// TestOldestPendingSeesAReplay: a replay that becomes visible while the oldest event is looked for is not passed by for
// ever, wherever the search began.
func TestOldestPendingSeesAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		at := make(map[string]time.Time)
		for _, id := range []string{"a", "b"} {
			ev := event(id, endpointA, "x")
			r.append(ev)
			at[id] = ev.AcceptedAt
			time.Sleep(time.Second)
		}
		a := r.lease(endpointA, 1)[0]
		r.finish(a, Result{Verdict: VerdictDead, Reason: ReasonExpired})
		// The search has read that a is a dead letter; before it says so, a is replayed.
		search := r.beginOldest()
		found := search.run()
		r.must(r.Retry(t.Context(), "a"))
		search.end(found)
		if got := r.Stats().OldestPending; !got.Equal(at["a"]) {
			t.Errorf("the oldest pending event is of %v, want %v", got, at["a"])
		}
	})
}
