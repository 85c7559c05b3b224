package delivery

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"postern/proxy/retry"
	"postern/proxy/target"
	"postern/spool"
)

// Signer makes the headers that prove a request's origin. It is called for every attempt.
type Signer interface {
	Sign(id string, at time.Time, body []byte) []spool.Header
}

// Endpoint is what an attempt needs to know of its endpoint. It is read, never changed, and may be replaced between two
// attempts of an event.
type Endpoint struct {
	Name string
	// URL is a named endpoint's url; events that name a target of their own do not look at it.
	URL target.Target
	// Timeout bounds the whole attempt, unless the event overrides it.
	Timeout time.Duration
	// Set replaces headers of the same name.
	Set []spool.Header
	// BodyMatches and BodyRejects are the success rules over the first 64 KiB of a 2xx answer's body; nil: no such rule.
	BodyMatches, BodyRejects *regexp.Regexp
	Sign                     Signer // nil: no signature
	// RoundTripper sends a request once, follows nothing and adds nothing. Its errors may tell their class by a method
	// RetryClass() retry.Class, and its connections may tell what left through them (see meter).
	RoundTripper http.RoundTripper
	// Blocked refuses targets, before every attempt; nil: none.
	Blocked func(target.Target) error
}

// Job is one attempt to be made.
type Job struct {
	Event    *spool.Event
	Number   int // 1, 2, …
	Endpoint *Endpoint
	// WantBody asks for Result.Response, for a client that waits for it.
	WantBody bool
	// OnWrote, where not nil, is called at most once, when the last byte of the request has been handed to the kernel (a
	// moment earlier where the connection cannot tell), at the latest when the attempt ends. It is not called if nothing
	// left, nor after Send has returned. It runs on another goroutine than Send's, and must not block.
	OnWrote func(time.Time)
}

// Response is a delivered answer for the client that waits for it.
type Response struct {
	Status  int
	Headers []spool.Header // end-to-end ones, by name
	Body    []byte
	// TooBig tells that Body is not the whole of it: it is over 64 KiB, or broke off.
	TooBig bool
}

// Result is how an attempt ended.
type Result struct {
	Attempt spool.Attempt
	Class   retry.Class // empty: delivered
	// RetryAfter is what the answer asked for, on any status.
	RetryAfter    time.Duration
	HasRetryAfter bool
	Answer        *spool.Answer // of a failed attempt that got one
	Response      *Response     // for Job.WantBody, where delivered
	// Cut: the context was cancelled from outside before the outcome was known. The attempt is not to be recorded, and
	// its number is used again.
	Cut bool
	// Exhausted, with Cut: this machine had nothing left to open a connection with. The same attempt is to be made later.
	Exhausted bool
	// Unsent: no byte of the request left.
	Unsent bool
	// Stale: it broke on a reused connection before any byte of an answer, or the receiver promised not to have processed
	// it (HTTP/2), which says nothing about the endpoint's health.
	Stale bool
	// Sampled: it got response headers or ended as timeout; its duration counts for percentiles.
	Sampled bool
}

// Sender makes attempts. It is safe for concurrent use.
type Sender interface {
	// Send makes one attempt. Cancelling ctx cuts it short.
	Send(ctx context.Context, j *Job) Result
}
