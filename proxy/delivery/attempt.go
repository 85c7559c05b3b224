package delivery

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"postern/proxy/retry"
	"postern/proxy/target"
	"postern/spool"
)

// attempt is what the links of the chain hand on to each other. Only the goroutine of Send touches it, but for the wire,
// which a dial may still hold on to when the attempt has ended: so no attempt is ever used for another event.
type attempt struct {
	job     *Job
	started time.Time // with its monotonic reading
	target  target.Target
	url     url.URL
	header  http.Header
	cancel  context.CancelFunc // ends all that the attempt waits for
	// location is that of a 3xx answer, taken away from http.Client so that it follows nothing.
	location string
	context  attemptContext
	wire     *wire
	own      wire // where nothing holds on to it
	result   Result
}

func newAttempt(j *Job) *attempt {
	a := &attempt{job: j, started: time.Now()}
	a.wire = &a.own
	if j.OnWrote != nil {
		// The connection keeps it until its next request, which may be long. It is not to keep the event with it.
		a.wire = &wire{onWrote: j.OnWrote}
	}
	a.result.Attempt = spool.Attempt{Number: j.Number, StartedAt: a.started.UTC().Truncate(time.Microsecond)}
	return a
}

// attemptContext is the context of an attempt's requests, through which those find it who are called by net/http.
type attemptContext struct {
	context.Context
	attempt *attempt
}

type attemptKey struct{}

// Value implements context.Context.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.attempt
	}
	return c.Context.Value(key)
}

func attemptOf(ctx context.Context) *attempt { return ctx.Value(attemptKey{}).(*attempt) }

// stop takes the duration; whatever happens to the body afterwards does not count.
func (a *attempt) stop() { a.result.Attempt.Duration = time.Since(a.started) }

// fail ends the attempt with a class.
func (a *attempt) fail(class retry.Class) {
	a.result.Class = class
	a.result.Attempt.Error = string(class)
}

// refuse fails an attempt for which nothing was sent at all.
func (a *attempt) refuse(class retry.Class) {
	a.stop()
	a.fail(class)
	a.result.Unsent = true
}
