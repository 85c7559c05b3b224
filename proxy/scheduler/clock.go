package scheduler

import (
	"sync"
	"time"
)

// clock is the wall clock, but it never goes back while the process runs: due times are wall-clock times on disk, and a
// clock that is set back by an hour would make every retry an hour late. A clock that jumps ahead is followed: after a
// suspended machine wakes, or a wrong clock is set right, what is due by the calendar is due.
type clock struct {
	mu   sync.Mutex // guards base
	base time.Time  // a reading of the clock from which the monotonic one counts on
}

func (c *clock) now() time.Time {
	real := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		c.base = real
	}
	elapsed := real.Sub(c.base) // monotonic
	if ahead(c.base.Round(0), elapsed, real.Round(0)) {
		c.base = real
		return real
	}
	return c.base.Add(elapsed)
}

// ahead tells whether a wall clock shows a later time than one that ran on evenly from base. The times have no
// monotonic reading: what the wall shows is compared.
func ahead(base time.Time, elapsed time.Duration, wall time.Time) bool {
	return wall.After(base.Add(elapsed))
}
