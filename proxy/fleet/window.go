package fleet

import (
	"math"
	"time"

	"postern/proxy/retry"
	"postern/sync/pgstore"
)

// maxWindow is one that Postgres can subtract from a time.
const maxWindow = 10 * 365 * 24 * time.Hour

// RetryWindow is the longest time from an event's first attempt to its last under a policy: every wait as long as it can
// be, every attempt running into its timeout, and every answer asking for the longest Retry-After, which comes on top.
// An event can stay longer only where it is held back: by a breaker, a pause, or a limit that is too low.
func RetryWindow(p retry.Policy, timeout time.Duration) pgstore.Window {
	attempts := p.Attempts()
	longest := timeout
	for n := 1; n < attempts; n++ {
		longest = min(plus(longest, plus(timeout, plus(p.Bound(n), p.MaxRetryAfter))), maxWindow)
	}
	return pgstore.Window{
		Longest: longest, Attempts: attempts, Step: min(plus(timeout, plus(p.Bound(attempts), p.MaxRetryAfter)), maxWindow),
	}
}

// plus adds durations that are not negative, and stays at the largest one instead of going round.
func plus(a, b time.Duration) time.Duration {
	if a, b = max(a, 0), max(b, 0); a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
