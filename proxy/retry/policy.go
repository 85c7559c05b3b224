package retry

import (
	"math"
	"math/rand/v2"
	"time"
)

// Policy is an endpoint's retry policy. The zero Policy allows one attempt.
type Policy struct {
	// MaxAttempts is how many attempts an event gets in all, the first one included.
	MaxAttempts int
	// BaseDelay and MaxDelay shape the exponential bound: min(MaxDelay, BaseDelay·2^(n-1)) before retry n.
	BaseDelay, MaxDelay time.Duration
	// MaxRetryAfter caps what a Retry-After header can ask for; zero means that the header is ignored.
	MaxRetryAfter time.Duration
	// Schedule, where HasSchedule is set, gives the bounds explicitly: one retry per entry.
	Schedule    []time.Duration
	HasSchedule bool
	// Statuses lists the status codes that are worth another attempt; nil means 408, 425, 429 and everything from 500.
	Statuses []int
}

// Rand returns a number uniform in [0, n); n is positive. math/rand/v2.Int64N is one.
type Rand func(n int64) int64

// Attempts is how many attempts an event gets in all: at least one.
func (p Policy) Attempts() int {
	if p.HasSchedule {
		return len(p.Schedule) + 1
	}
	return max(1, p.MaxAttempts)
}

// Delay draws the wait before retry n (1, 2, …): full jitter, uniform from zero to Bound(n), both included. A nil rnd
// uses math/rand/v2.
func (p Policy) Delay(n int, rnd Rand) time.Duration {
	bound := int64(p.Bound(n))
	if bound <= 0 {
		return 0
	}
	if rnd == nil {
		rnd = rand.Int64N
	}
	if bound < math.MaxInt64 {
		bound++
	}
	return time.Duration(rnd(bound))
}

// Bound is the longest wait before retry n, never negative, for any n. An event that may be tried more often than the
// schedule has entries keeps to the last one; with an empty schedule it falls back to base and maximum.
func (p Policy) Bound(n int) time.Duration {
	n = max(1, n)
	if p.HasSchedule && len(p.Schedule) > 0 {
		return max(0, p.Schedule[min(n, len(p.Schedule))-1])
	}
	base, limit := max(0, p.BaseDelay), max(0, p.MaxDelay)
	shift := n - 1
	if shift >= 63 || base > limit>>shift { // compared before the shift, so that nothing overflows
		if base == 0 {
			return 0
		}
		return limit
	}
	return base << shift
}
