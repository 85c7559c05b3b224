package breaker

import "time"

// State returns the state at the time: an open breaker whose cooldown is over is half_open, probe or no probe.
func (b *Breaker) State(now time.Time) State {
	if b.state == Open && !now.Before(b.openedAt.Add(b.Cooldown())) {
		return HalfOpen
	}
	return b.state
}

// Failures returns the number of consecutive failures.
func (b *Breaker) Failures() int { return b.failures }

// Threshold returns the number of consecutive failures in force.
func (b *Breaker) Threshold() int { return b.config.threshold(b.p95, b.samples) }

// Cooldown returns the cooldown in force: that of the opening under way, or of the next one if the breaker is closed.
func (b *Breaker) Cooldown() time.Duration { return b.config.cooldown(b.failedProbes) }

// OpenedAt returns when the breaker last opened; zero while it is closed.
func (b *Breaker) OpenedAt() time.Time { return b.openedAt }

// Slots returns how many attempts may be out at once where the policy allows limit, and at most that.
func (b *Breaker) Slots(limit int) int {
	if b.slots == 0 {
		return limit
	}
	return min(b.slots, limit)
}

// EndGrowth ends the growth of concurrency once it has reached what the policy allows.
func (b *Breaker) EndGrowth(limit int) {
	if b.slots >= limit {
		b.slots = 0
	}
}

// Memory is what a restart must not forget.
type Memory struct {
	State        State
	Failures     int
	FailedProbes int
	Slots        int
	OpenedAt     time.Time
}

// Memory returns what to store. A probe under way is not part of it: after a restart nobody would report it.
func (b *Breaker) Memory() Memory {
	return Memory{b.state, b.failures, b.failedProbes, b.slots, b.openedAt}
}

// Restore returns a breaker that goes on from m. An opening that lies in the future was stored by a clock that has
// been set back; it counts from now, so that the breaker is not open for longer than its cooldown.
func Restore(c Config, m Memory, now time.Time) Breaker {
	b := New(c)
	b.state = min(m.State, Open)
	b.failures = max(m.Failures, 0)
	b.failedProbes = max(m.FailedProbes, 0)
	if b.state == Closed {
		b.slots = max(m.Slots, 0)
		return b
	}
	b.openedAt = m.OpenedAt
	if b.openedAt.After(now) {
		b.openedAt = now
	}
	return b
}
