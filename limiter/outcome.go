package limiter

import (
	"time"

	"postern/limiter/breaker"
)

// Kind classes how an attempt ended, as the gate needs it.
type Kind uint8

// The kinds.
const (
	// Neutral says nothing about the endpoint: a failure of our own, or an attempt that a shutdown cut.
	Neutral Kind = iota
	// Success is a delivery.
	Success
	// Failure counts against the endpoint.
	Failure
	// Cleared is an answer that is no failure of the endpoint, such as most of 4xx: someone is there.
	Cleared
	// Throttled is a 429: the whole endpoint waits, then is tried one at a time.
	Throttled
)

// Outcome is how an attempt ended.
type Outcome struct {
	Kind Kind
	// Wait is how long the whole endpoint waits after a 429. Negative is zero.
	Wait time.Duration
	// Unsent tells that nothing left for the wire, so that the permit is not spent. A wrong true breaks the limits'
	// promise; it is ignored where Left was called.
	Unsent bool
}

// result is what the outcome says to the breaker. A 429 says nothing: the endpoint is well enough to refuse.
func (o Outcome) result() breaker.Result {
	switch o.Kind {
	case Success:
		return breaker.Success
	case Failure:
		return breaker.Failure
	case Cleared:
		return breaker.Cleared
	default:
		return breaker.Undecided
	}
}

// Left tells that the permit's request was written to the wire at that time. Until it is told, or the permit is
// reported, the request counts as leaving at every moment. Ask again afterwards: where limits are tight, that was
// what the next one waited for, and its own answer may be long in coming.
func (g *Gate) Left(p Permit, at time.Time) {
	e, ok := g.flights.leave(p.number)
	if !ok {
		return
	}
	g.seen(at)
	g.bucket.Sent(later(at, e.taken))
}

// Report ends the permit's attempt. A request of which Left was never told counts as having left now, unless it is
// Unsent. Changed tells that State is worth storing. A permit that was reported before is ignored.
func (g *Gate) Report(p Permit, o Outcome, now time.Time) (changed bool) {
	e, ok := g.flights.end(p.number)
	if !ok {
		return false
	}
	g.seen(now)
	g.settle(e, o.Unsent, now)
	changed = g.breaker.Report(p.ticket, o.result(), now)
	g.breaker.EndGrowth(g.policy.Concurrency)
	switch o.Kind {
	case Throttled:
		g.throttle.begin(now, o.Wait)
		return true
	case Neutral:
		return changed
	default:
		return g.throttle.answered(p.throttle) || changed
	}
}

// settle enters the end of a permit into the limits' books.
func (g *Gate) settle(e flight, unsent bool, now time.Time) {
	switch {
	case e.left:
	case !unsent:
		g.bucket.Sent(later(now, e.taken))
	case e.limited:
		g.bucket.Undo(now)
		g.credit.ready++
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
