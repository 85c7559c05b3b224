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

// A retry that was planned by a clock which was ahead, after an attempt that began by one which was not, is brought forward
// too: the clock was set during the attempt, or the scheduler's runs on evenly while the wall clock was set back. One that
// was planned by the right clock keeps its wait, however long.
func TestRetryPlannedByAnotherClock(t *testing.T) {
	for name, tt := range map[string]struct {
		began, planned, next time.Duration // from the time that is right
		due                  time.Duration
	}{
		"set during the attempt":  {-time.Second, time.Hour, time.Hour + time.Minute, time.Minute},
		"set back, and still on":  {-time.Hour, time.Hour, time.Hour + time.Minute, time.Minute},
		"planned before all that": {-time.Minute - time.Second, -time.Minute, 2 * time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			r := newRig(t, c.use)
			right := c.now()
			ev := event("a", endpointA, "x")
			ev.AcceptedAt = right.Add(-2 * time.Hour)
			r.append(ev)
			l := r.lease(endpointA, 1)[0]
			a := attempt(l, 500)
			a.StartedAt, a.Duration = right.Add(tt.began), 10*time.Millisecond
			c.pass(time.Hour)
			r.finish(l, Result{Attempt: a, Verdict: VerdictRetry, NextAttempt: right.Add(tt.next), PlannedAt: right.Add(tt.planned)})
			r.close()
			c.pass(-time.Hour)
			r.open()
			if v, err := r.Get("a", false); err != nil || v.NextAttempt.Sub(right).Abs()-tt.due > time.Second || v.NextAttempt.Sub(right) < tt.due-time.Second {
				t.Errorf("due %v after the right time, want %v: %v", v.NextAttempt.Sub(right), tt.due, err)
			}
			if v, _ := r.Get("a", false); !v.History[0].StartedAt.Equal(a.StartedAt.Truncate(time.Microsecond)) {
				t.Errorf("the attempt's own time was changed to %v", v.History[0].StartedAt)
			}
		})
	}
}
