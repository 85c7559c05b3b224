package limiter

import (
	"errors"
	"fmt"

	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

// Policy is what the configuration says about one endpoint's traffic.
type Policy struct {
	// Concurrency is how many attempts may be out at once, 1 or more.
	Concurrency int
	// Limits hold in any window of their length, retries and probes included. None: no limit, and nothing is reserved.
	Limits []bucket.Limit
	// Burst is how many requests may leave at once after a pause, for the shortest window. 1 spaces evenly.
	Burst int
	// Breaker says when to stop trying a broken endpoint and when to try it again.
	Breaker breaker.Config
}

// Validate returns all that is impossible in the policy, each fault with what would be right.
func (p Policy) Validate() error {
	var errs []error
	if p.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("concurrency is %d: it must be 1 or more", p.Concurrency))
	}
	errs = append(errs, bucket.Validate(p.Limits, p.Burst))
	if err := p.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("breaker: %w", err))
	}
	return errors.Join(errs...)
}

// reserve is how many sends are reserved on disk at a time: a twentieth of the smallest limit, so that a kill costs
// little of it; 64 at most, since by then one commit is shared by enough sends to cost them nothing.
func (p Policy) reserve() int {
	if len(p.Limits) == 0 {
		return 0
	}
	smallest := bucket.MaxN
	for _, l := range p.Limits {
		smallest = min(smallest, l.N)
	}
	return min(max(smallest/20, 1), 64)
}
