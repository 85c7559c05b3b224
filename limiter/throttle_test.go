package limiter

import (
	"testing"
	"time"
)

// TestThrottledOneAtATime: five 429 with Retry-After: 1, then an answer, as cases from the field have it.
func TestThrottledOneAtATime(t *testing.T) {
	b := newBench(t, policy())
	for range 5 {
		b.throttled(b.take(), time.Second)
		b.refused(ReasonThrottled, time.Second)
		b.after(time.Second)
		p := b.take()
		b.refused(ReasonThrottled, -1)
		b.throttled(p, time.Second)
		b.after(time.Second)
	}
	b.tries(Success)
	b.take()
	b.take()
	if s := b.Snapshot(b.now); s.ConsecutiveFailures != 0 || s.Throttled {
		t.Errorf("%+v", s)
	}
}

func TestWhatEndsAThrottle(t *testing.T) {
	for name, c := range map[string]struct {
		kind Kind
		ends bool
	}{
		"success": {Success, true},
		"failure": {Failure, true},
		"cleared": {Cleared, true},
		"neutral": {Neutral, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, policy())
			b.throttled(b.take(), 0)
			b.tries(c.kind)
			if got := !b.Snapshot(b.now).Throttled; got != c.ends {
				t.Errorf("ended %v, want %v", got, c.ends)
			}
		})
	}
}

func TestAnswersToRequestsOfBeforeDoNotEndAThrottle(t *testing.T) {
	b := newBench(t, policy())
	old := []Permit{b.take(), b.take(), b.take()}
	b.throttled(old[0], time.Second)
	b.end(old[1], Success)
	b.refused(ReasonThrottled, time.Second)
	b.after(time.Second)
	b.refused(ReasonThrottled, -1) // the third is still out
	b.end(old[2], Success)
	b.take()
	b.refused(ReasonThrottled, -1)
}

func TestTheLongerWaitStays(t *testing.T) {
	b := newBench(t, policy())
	permits := []Permit{b.take(), b.take(), b.take()}
	b.throttled(permits[0], time.Minute)
	b.throttled(permits[1], time.Second)
	b.refused(ReasonThrottled, time.Minute)
	b.after(30 * time.Second)
	b.throttled(permits[2], time.Minute)
	b.refused(ReasonThrottled, time.Minute)
	if s := b.Snapshot(b.now); !s.ThrottledUntil.Equal(b.now.Add(time.Minute)) || s.Concurrency != 1 {
		t.Errorf("%+v", s)
	}
}

func TestThrottleSurvivesARestart(t *testing.T) {
	b := newBench(t, policy())
	b.throttled(b.take(), time.Minute)
	b.after(10 * time.Second)
	b.restart()
	b.refused(ReasonThrottled, 50*time.Second)
	b.after(-24 * time.Hour) // the clock is set back while nobody runs
	b.restart()
	b.refused(ReasonThrottled, time.Minute)
	b.after(time.Minute)
	b.take()
	b.refused(ReasonThrottled, -1)
}

func TestANegativeWaitIsNone(t *testing.T) {
	b := newBench(t, policy())
	b.throttled(b.take(), -time.Hour)
	b.take()
	b.refused(ReasonThrottled, -1)
}
