package limiter_test

import (
	"fmt"
	"time"

	"postern/limiter"
	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

// A scheduler asks, reserves where it must, takes a permit, and reports how the attempt ended.
func Example() {
	policy := limiter.Policy{
		Concurrency: 32,
		Limits:      []bucket.Limit{{N: 100, Per: time.Minute}},
		Burst:       1,
		Breaker:     breaker.Config{FailureThreshold: 10, Cooldown: 5 * time.Minute, MaxCooldown: time.Hour},
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	gate := limiter.New(policy, now)

	if d := gate.Ask(now, 0); d.Reserve > 0 {
		state := gate.Reserve(d.Reserve, now)
		fmt.Println("store", len(state) > 0, d.Reason)
		gate.Reserved(d.Reserve, now)
	}
	permit, ok := gate.Take(now, 0)
	fmt.Println("taken", ok)

	gate.Left(permit, now.Add(3*time.Millisecond))
	if gate.Report(permit, limiter.Outcome{Kind: limiter.Failure}, now.Add(time.Second)) {
		fmt.Println("store the state with the attempt")
	}

	next := gate.Ask(now.Add(3*time.Millisecond), 0)
	fmt.Println(next.Reason, next.At.Sub(now).Round(time.Millisecond))
	// Output:
	// store true reserving
	// taken true
	// store the state with the attempt
	// rate_limited 601ms
}
