package delivery

import (
	"net/http"
	"time"

	"postern/proxy/retry"
	"postern/proxy/target"
	"postern/spool"
)

// attempt is what the links of the chain hand on to each other. Only the goroutine of Send touches it.
type attempt struct {
	job     *Job
	started time.Time // with its monotonic reading
	target  target.Target
	request *http.Request
	// location is that of a 3xx answer, taken away from http.Client so that it follows nothing.
	location string
	wire     *wire
	result   Result
}

func newAttempt(j *Job) *attempt {
	a := &attempt{job: j, started: time.Now()}
	a.wire = &wire{onWrote: j.OnWrote}
	a.result.Attempt = spool.Attempt{Number: j.Number, StartedAt: a.started.UTC().Truncate(time.Microsecond)}
	return a
}

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
