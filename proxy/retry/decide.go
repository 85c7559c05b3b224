package retry

import "time"

// Verdict is what becomes of an event after an attempt.
type Verdict uint8

// The verdicts.
const (
	VerdictDelivered Verdict = iota + 1
	VerdictRetry             // again after Decision.Delay
	VerdictDead              // a dead letter for Decision.Reason
)

// Reason is why an event became a dead letter, in the contract's words (the spool's Reason constants).
type Reason string

// The reasons.
const (
	ReasonExhausted Reason = "exhausted" // all attempts were used up
	ReasonExpired   Reason = "expired"   // its TTL passed
	ReasonPermanent Reason = "permanent" // an answer or a fault that no retry mends
	ReasonGone      Reason = "gone"      // the receiver said 410
)

// Input is everything a decision depends on, beside the policy.
type Input struct {
	Class  Class
	Status int // 0 where no response headers came
	// Charged counts the attempts of the current budget, this one included.
	Charged int
	// MaxAttempts overrides the policy's for this event; zero means that the policy decides.
	MaxAttempts int
	// Since is when budget and TTL began. A TTL of zero never passes.
	Since time.Time
	TTL   time.Duration
	Now   time.Time
	// RetryAfter is what the answer asked for, where HasRetryAfter is set. It counts on 429 and 503 alone.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Rand draws the jitter; nil uses math/rand/v2.
	Rand Rand
}

// Decision is what follows.
type Decision struct {
	Verdict Verdict
	Reason  Reason        // for VerdictDead
	Delay   time.Duration // for VerdictRetry, from Input.Now
}

// Decide joins outcome, budget, back-off, Retry-After and TTL. An event whose next attempt would fall after its TTL is
// retried all the same: whoever keeps it gives it up when the TTL passes, no sooner than was promised.
func Decide(p Policy, in Input) Decision {
	switch p.Outcome(in.Class, in.Status) {
	case OutcomeDelivered:
		return Decision{Verdict: VerdictDelivered}
	case OutcomePermanent:
		if in.Status == 410 { // RFC 9110, section 15.5.11
			return dead(ReasonGone)
		}
		return dead(ReasonPermanent)
	}
	budget := in.MaxAttempts
	if budget <= 0 {
		budget = p.Attempts()
	}
	if in.Charged >= budget {
		return dead(ReasonExhausted)
	}
	if in.TTL > 0 && !in.Now.Before(in.Since.Add(in.TTL)) {
		return dead(ReasonExpired)
	}
	return Decision{Verdict: VerdictRetry, Delay: p.wait(in)}
}

func dead(why Reason) Decision { return Decision{Verdict: VerdictDead, Reason: why} }

// wait is the jitter, on top of what the receiver asked for. Without the jitter all the events that were turned away
// together would come back together.
func (p Policy) wait(in Input) time.Duration {
	jitter := min(p.Delay(in.Charged, in.Rand), maxWait)
	return p.RetryAfterFloor(in.Status, in.RetryAfter, in.HasRetryAfter) + jitter
}

// RetryAfterFloor is the least wait that an answer's Retry-After asks for: zero where it does not count, else capped by
// the policy. On 429 the whole endpoint waits for it.
func (p Policy) RetryAfterFloor(status int, asked time.Duration, has bool) time.Duration {
	if !has || (status != 429 && status != 503) {
		return 0
	}
	return min(max(0, asked), max(0, p.MaxRetryAfter), maxWait)
}
