// Package limiter answers one question about one endpoint: may it be tried now, and if not, when and why not?
//
// A Gate joins what can say no: a person's pause, the circuit breaker, a 429 that made the endpoint wait, rate limits,
// bounded concurrency. Nothing leaves without a Permit, and every Permit comes back with an Outcome, from which the
// Gate learns.
//
// It promises: in any window of a limit's length at most that many requests leave, across restarts too, provided that
// nothing leaves before its reservation is on disk (see Gate.Reserve); never two probes at once; a lost or late result
// moves nothing that it should not; a stored state that cannot be read costs its content, never the endpoint.
//
// It leaves out: clocks, goroutines, locks and I/O. One goroutine owns a Gate, hands it the time, and stores what
// State returns. Times should carry Go's monotonic reading, as time.Now's do: then a wall clock that jumps while the
// process runs moves nothing. What is an answer and what a failure is classified by the caller.
package limiter

import (
	"time"

	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

// Gate guards one endpoint. See New and Restore.
type Gate struct {
	policy   Policy
	breaker  breaker.Breaker
	bucket   *bucket.Bucket
	throttle throttle
	pause    pause
	flights  flights
	credit   credit
	// last is the latest time that the gate was told; State needs it to turn times into wall-clock ones.
	last time.Time
}

// pause is a stop by a person, or by a 410, until a person resumes.
type pause struct {
	on     bool
	reason string
	since  time.Time
}

// New returns the gate of an endpoint of which nothing is known.
func New(p Policy, now time.Time) *Gate {
	return &Gate{
		policy:  p,
		breaker: breaker.New(p.Breaker),
		bucket:  bucket.New(p.Limits, p.Burst, now),
		last:    now,
	}
}

// SetPolicy puts another policy in force, after a reload. State stays, and spent permits stay spent.
func (g *Gate) SetPolicy(p Policy, now time.Time) {
	g.seen(now)
	g.policy = p
	g.breaker.SetConfig(p.Breaker)
	g.bucket.SetLimits(p.Limits, p.Burst, now)
}

// SetLatency tells the 95th percentile of the last 24 hours and how many samples it is of. Above the policy's SlowP95
// the slow threshold is in force, from breaker.MinSamples samples on.
func (g *Gate) SetLatency(p95 time.Duration, samples int) { g.breaker.SetLatency(p95, samples) }

// Pause lets nothing through until Resume. The reason is shown to people; its first 200 bytes are kept.
func (g *Gate) Pause(reason string, now time.Time) {
	g.seen(now)
	g.pause = pause{on: true, reason: shorten(reason), since: now}
}

// Resume ends a pause.
func (g *Gate) Resume(now time.Time) {
	g.seen(now)
	g.pause = pause{}
}

// Reset closes the breaker and brings its cooldown back to the start. Pause, throttle and limits stay as they are.
func (g *Gate) Reset(now time.Time) {
	g.seen(now)
	g.breaker.Reset()
}

func (g *Gate) seen(now time.Time) {
	if now.After(g.last) {
		g.last = now
	}
}
