package limiter

import (
	"time"

	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

// Snapshot is what people and the API are shown of a gate.
type Snapshot struct {
	Breaker             breaker.State
	ConsecutiveFailures int
	Threshold           int           // the one in force: the slow one where the endpoint is slow
	OpenedAt            time.Time     // zero while closed
	Cooldown            time.Duration // the one in force
	Probing             bool          // a probe is out

	Paused      bool
	PauseReason string
	PausedAt    time.Time

	// Throttled tells that the endpoint is tried one at a time; ThrottledUntil, that it waits until then.
	Throttled      bool
	ThrottledUntil time.Time

	// Concurrency is how many attempts may be out now, MaxConcurrency what the policy allows: it is less while it
	// grows after the breaker closed, and 1 while throttled or half open.
	Concurrency, MaxConcurrency int

	Limits []bucket.Use

	// Reason is why nothing may leave now, empty if something may. NextAllowed is when that ends, if time ends it.
	Reason      Reason
	NextAllowed time.Time
}

// Snapshot shows the gate as it is at that time. Its times belong to the wall clock of now.
func (g *Gate) Snapshot(now time.Time) Snapshot {
	d := g.Ask(now, 0)
	s := Snapshot{
		Breaker:             g.breaker.State(now),
		ConsecutiveFailures: g.breaker.Failures(),
		Threshold:           g.breaker.Threshold(),
		OpenedAt:            nextMilli(wall(g.breaker.OpenedAt(), now)), // as it is kept over a restart
		Cooldown:            g.breaker.Cooldown(),
		Probing:             d.Reason == ReasonProbing,
		Paused:              g.pause.on,
		PauseReason:         g.pause.reason,
		PausedAt:            nextMilli(wall(g.pause.since, now)),
		Throttled:           g.throttle.on,
		Concurrency:         g.breaker.Slots(g.policy.Concurrency),
		MaxConcurrency:      g.policy.Concurrency,
		Limits:              g.bucket.Use(now, g.flights.out),
		Reason:              d.Reason,
		NextAllowed:         wall(d.At, now),
	}
	if s.Throttled && g.throttle.until().After(now) {
		s.ThrottledUntil = wall(g.throttle.until(), now)
	}
	if s.Throttled || s.Breaker == breaker.HalfOpen {
		s.Concurrency = 1
	}
	return s
}

// wall turns a time of the process into one of the wall clock that now shows, which may have been set since.
func wall(t, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(now))
}
