package spool

import (
	"testing"
	"testing/synctest"
	"time"
)

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
