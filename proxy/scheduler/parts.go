package scheduler

import (
	"context"
	"log/slog"
	"time"

	"postern/limiter"
	"postern/limiter/quantile"
	"postern/proxy/retry"
	"postern/spool"
)

// Store is what the scheduler needs of the spool; *spool.Spool is one.
type Store interface {
	Lease(endpoint string, now time.Time, max int, maxBytes int64) ([]*spool.Lease, time.Time, error)
	Finish(l *spool.Lease, r spool.Result)
	Release(l *spool.Lease)
	SaveEndpointState(endpoint string, state []byte, done func(error))
	Writable() bool
}

// Sender makes one attempt. It blocks until the attempt has ended, and ends soon after ctx does.
type Sender interface {
	Send(ctx context.Context, a Attempt) Outcome
}

// Attempt is what a Sender is asked to do.
type Attempt struct {
	Lease  *spool.Lease
	Number int
	// Wrote, where not nil, is to be called when the request has been written whole, with the time of that.
	Wrote func(time.Time)
}

// Outcome is what came of an attempt.
type Outcome struct {
	Attempt       spool.Attempt
	Class         retry.Class // empty: delivered
	RetryAfter    time.Duration
	HasRetryAfter bool
	Answer        *spool.Answer
	Cut           bool // ended by a stop: not recorded, and its number is used again
	Exhausted     bool // with Cut: this machine could not open a connection; to be tried again in a while
	Unsent        bool // nothing of the request left
	Stale         bool // broke on a kept-alive connection before an answer began, or was not processed: no fault of the endpoint
	Sampled       bool // counts for the percentiles
}

// Policy is what the configuration says of an endpoint, as far as the scheduler needs it.
type Policy struct {
	Limiter limiter.Policy
	Retry   retry.Policy
	// Address is a named endpoint's url, to be compared with the one of the last reload.
	Address string
	// Named tells a configured endpoint from an ad hoc one: only named ones are paused by a 410.
	Named bool
}

// Policies finds an endpoint's policy. ok is false for an endpoint that has left the configuration: its events wait.
type Policies interface {
	Policy(endpoint string) (p Policy, ok bool)
}

// Told is one finished attempt, or an event given up without one, as the observer hears of it after the commit.
type Told struct {
	Lease    *spool.Lease
	Outcome  Outcome // Attempt.Number is zero where no attempt was made
	Result   retry.Outcome
	Verdict  spool.Verdict
	Reason   string // of a dead letter
	Next     time.Time
	Recorded time.Time
}

// Observer hears of everything once. Calls come from the scheduler's goroutine and must not block.
type Observer interface {
	Told(t Told)
	// Breaker tells that an endpoint's breaker, throttle or pause changed.
	Changed(endpoint string, s limiter.Snapshot)
}

// Config is the scheduler's. Zero bounds take the defaults.
type Config struct {
	// Concurrency bounds the attempts in flight, all endpoints together.
	Concurrency int
	// MemoryBytes bounds the events that wait in memory, fresh or read ahead (default 32 MiB).
	MemoryBytes int64
	// Unrecorded bounds results that wait for the disk (default 4096): beyond it nothing new is sent.
	Unrecorded int
	Store      Store
	Sender     Sender
	Policies   Policies
	Observer   Observer
	Windows    *quantile.Pool
	Logger     *slog.Logger
}
