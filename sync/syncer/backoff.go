package syncer

import (
	"math/rand/v2"
	"time"
)

const (
	backoffStart = 250 * time.Millisecond
	// backoffCap is short, since a try costs one connection: after an outage of any length the rows go on within it.
	backoffCap = 5 * time.Second
)

// backoff doubles the wait with each failure, with jitter: a fleet that lost its Postgres does not come back as one.
type backoff struct{ failures int }

// next is the wait before the next try, uniform between half and all of what it has grown to.
func (b *backoff) next() time.Duration {
	d := min(backoffStart<<min(b.failures, 10), backoffCap)
	b.failures++
	return d/2 + rand.N(d/2+1)
}

func (b *backoff) reset() { b.failures = 0 }
