package limiter

import "time"

// Reason is why an endpoint may not be tried now. The words appear in the API.
type Reason string

// The reasons.
const (
	ReasonNone        Reason = ""             // it may be tried
	ReasonPaused      Reason = "paused"       // until a person resumes
	ReasonBreakerOpen Reason = "breaker_open" // until the cooldown is over
	ReasonProbing     Reason = "probing"      // until the probe's outcome is known
	ReasonThrottled   Reason = "throttled"    // after a 429: until its wait is over, then one at a time
	ReasonRateLimited Reason = "rate_limited" // until the limits have room
	ReasonReserving   Reason = "reserving"    // until sends are reserved on disk
	ReasonConcurrency Reason = "concurrency"  // until an attempt that is out has ended
)

// Decision is the answer to "may this endpoint be tried now?".
type Decision struct {
	Allow bool
	// At is the earliest time to ask again. Zero with !Allow: only a call changes that, of Report, Left, Reserved, Resume,
	// Reset or SetPolicy; ask again after each.
	At     time.Time
	Reason Reason
	// Reserve, if not zero, is the number to call Gate.Reserve with; its state must be on disk before asking again.
	Reserve int
}

// Ask tells whether an attempt may begin now, with inFlight attempts out. Asking changes nothing; all that was asked
// and not taken is as if it had not been asked. If Decision.At is set it is later than now.
func (g *Gate) Ask(now time.Time, inFlight int) Decision {
	g.seen(now)
	inFlight = max(inFlight, g.flights.len())
	if g.pause.on {
		return Decision{Reason: ReasonPaused}
	}
	if until, ok := g.breaker.Ask(now); !ok {
		if until.IsZero() {
			return Decision{Reason: ReasonProbing}
		}
		return Decision{Reason: ReasonBreakerOpen, At: until}
	}
	if until, ok := g.throttle.ask(now, inFlight); !ok {
		return Decision{Reason: ReasonThrottled, At: until}
	}
	if at, ok := g.bucket.Ask(now, g.flights.out); !ok {
		return Decision{Reason: ReasonRateLimited, At: at}
	}
	if inFlight >= g.breaker.Slots(max(g.policy.Concurrency, 1)) {
		return Decision{Reason: ReasonConcurrency}
	}
	if g.bucket.Limited() && g.credit.ready < 1 {
		return Decision{Reason: ReasonReserving, Reserve: g.policy.reserve()}
	}
	return Decision{Allow: true}
}

// Take begins an attempt if Ask would allow it. Every permit must be reported once, whatever becomes of it.
func (g *Gate) Take(now time.Time, inFlight int) (Permit, bool) {
	if !g.Ask(now, inFlight).Allow || !g.bucket.Take(now) {
		return Permit{}, false
	}
	limited := g.bucket.Limited()
	if limited {
		g.credit.ready--
	}
	number := g.flights.begin(now, limited)
	return Permit{ticket: g.breaker.Take(now), throttle: g.throttle.era, number: number}, true
}
