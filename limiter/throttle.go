package limiter

import "time"

// throttle is what a 429 does: the endpoint waits, then is tried one at a time until an answer is not a 429.
type throttle struct {
	on    bool
	since time.Time
	wait  time.Duration
	// era counts the beginnings. Only attempts that began in the one under way can end it: an answer to an older
	// request says nothing about whether the endpoint takes more.
	era uint64
}

func (t *throttle) until() time.Time { return t.since.Add(t.wait) }

// ask tells whether one more attempt may begin beside inFlight others, or from when on; zero: when they have ended.
func (t *throttle) ask(now time.Time, inFlight int) (until time.Time, ok bool) {
	if !t.on {
		return time.Time{}, true
	}
	if until = t.until(); now.Before(until) {
		return until, false
	}
	return time.Time{}, inFlight == 0
}

// begin starts the wait, or prolongs it; an earlier and longer one stays.
func (t *throttle) begin(now time.Time, wait time.Duration) {
	wait = max(wait, 0)
	if !t.on {
		t.on = true
		t.era++
		t.since, t.wait = now, wait
		return
	}
	if now.Add(wait).After(t.until()) {
		t.since, t.wait = now, wait
	}
}

// answered ends the throttle if the attempt that got another answer than 429 began under it.
func (t *throttle) answered(era uint64) (changed bool) {
	if !t.on || era != t.era {
		return false
	}
	t.on = false
	return true
}
