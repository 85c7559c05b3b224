// Package breaker decides whether an endpoint is healthy enough to be tried.
//
// It promises: one counter of consecutive failures; at the threshold the breaker opens and nothing is allowed; when
// the cooldown is over exactly one probe is out at a time; a failed probe doubles the cooldown up to a maximum; a
// good one closes the breaker, and concurrency then grows from 1 with each success. Results that began before the
// breaker's last change move nothing.
//
// It leaves out: what counts as a failure (the caller classifies), throttling by 429, rate limits, storage. It is
// pure: values and times in, decisions out; no clock, no goroutine, no lock. One goroutine owns a Breaker.
package breaker

import (
	"errors"
	"fmt"
	"time"
)

// MinSamples is how many latency samples the slow threshold needs: a p95 of fewer says more about chance than about
// the endpoint.
const MinSamples = 20

// Config is the breaker's part of an endpoint's policy.
type Config struct {
	// FailureThreshold is the number of consecutive failures that opens the breaker, 1 or more.
	FailureThreshold int
	// Cooldown is how long the breaker stays open the first time, MaxCooldown how long at most after failed probes.
	Cooldown, MaxCooldown time.Duration
	// SlowP95 is the 95th percentile above which SlowFailureThreshold applies too; zero switches that off.
	SlowP95 time.Duration
	// SlowFailureThreshold is the threshold of a slow endpoint. The lower of the two thresholds is in force.
	SlowFailureThreshold int
}

// Validate returns all that is impossible in the configuration, each fault naming its setting and what would be right.
func (c Config) Validate() error {
	var errs []error
	if c.FailureThreshold < 1 {
		errs = append(errs, fmt.Errorf("failure_threshold is %d: it must be 1 or more", c.FailureThreshold))
	}
	if c.Cooldown <= 0 {
		errs = append(errs, fmt.Errorf("cooldown is %v: it must be longer than zero", c.Cooldown))
	}
	if c.MaxCooldown < c.Cooldown {
		errs = append(errs, fmt.Errorf("max_cooldown is %v: it must be at least the cooldown, %v", c.MaxCooldown, c.Cooldown))
	}
	if c.SlowP95 < 0 {
		errs = append(errs, fmt.Errorf("slow_p95 is %v: it must be zero (off) or longer", c.SlowP95))
	}
	if c.SlowP95 > 0 && c.SlowFailureThreshold < 1 {
		errs = append(errs, fmt.Errorf("slow_failure_threshold is %d: it must be 1 or more", c.SlowFailureThreshold))
	}
	return errors.Join(errs...)
}

// threshold is the number of consecutive failures that opens the breaker now.
func (c Config) threshold(p95 time.Duration, samples int) int {
	n := c.FailureThreshold
	if c.SlowP95 > 0 && samples >= MinSamples && p95 > c.SlowP95 {
		n = min(n, c.SlowFailureThreshold)
	}
	return max(n, 1)
}

// cooldown is the time to stay open after the given number of failed probes in a row.
func (c Config) cooldown(failedProbes int) time.Duration {
	d := max(c.Cooldown, 0)
	limit := max(c.MaxCooldown, d)
	for range failedProbes {
		// Compared before doubling: neither many failed probes nor a long cooldown can overflow.
		if d == 0 || d > limit/2 {
			return limit
		}
		d *= 2
	}
	return d
}
