package spool

import (
	"testing"
	"time"
)

// A clock that is set back by an hour between two runs delays nothing that was due, and nothing that an application asked
// to be delayed is hurried.
func TestClockSetBackBetweenRuns(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use)
	for _, id := range []string{"fresh", "tried", "later"} {
		ev := event(id, endpointA, "x")
		ev.AcceptedAt = c.now()
		if id == "later" {
			ev.NotBefore = c.now().Add(30 * time.Minute)
		}
		r.append(ev)
	}
	l := r.lease(endpointA, 1)[0]
	r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: c.now().Add(time.Minute)})
	if l.Event.ID != "fresh" {
		t.Fatalf("leased %s first", l.Event.ID)
	}
	later := c.now().Add(30 * time.Minute)
	r.close()
	c.pass(-time.Hour)
	r.open()
	if got := r.lease(endpointA, 3); len(got) != 1 || got[0].Event.ID != "tried" {
		t.Fatalf("%d events are due at once, want the one that was never tried", len(got))
	} else {
		r.Release(got[0])
	}
	c.pass(time.Minute)
	if got := r.lease(endpointA, 3); len(got) != 2 {
		t.Errorf("%d events are due after a minute, want the retry as well", len(got))
	}
	if v, err := r.Get("later", false); err != nil || !v.NextAttempt.Equal(later.Truncate(time.Microsecond)) {
		t.Errorf("the delayed event is due at %v, want %v: %v", v.NextAttempt, later, err)
	}
	// The next start has nothing to bring forward any more.
	r.close()
	r.open()
	if v, _ := r.Get("later", false); !v.NextAttempt.Equal(later.Truncate(time.Microsecond)) {
		t.Errorf("moved at the second start to %v", v.NextAttempt)
	}
}
