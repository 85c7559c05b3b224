package scheduler

import (
	"time"

	"postern/limiter"
	"postern/spool"
)

// flight is one event's way from the decision to send it until what came of it is on disk. The goroutines that take part
// hand it on to each other, one at a time, so that no hand-over needs memory of its own.
type flight struct {
	s        *Scheduler
	line     *line
	lease    *spool.Lease
	permit   limiter.Permit
	standing standing // of the line at the start
	rank     rank
	fresh    bool // it came straight from its commit
	tried    bool // there were attempts before
	limited  bool // the gate wants to know when the request left
	worker   worker
	outcome  Outcome
	result   spool.Result
	err      error // of recording the result
	// next is what the scheduler's goroutine does when the flight comes to it.
	next func(*flight)
}

// handle implements message.
func (f *flight) handle() { f.next(f) }

// work makes the attempt, in a worker's goroutine.
func (f *flight) work(w worker) {
	attempt := Attempt{Lease: f.lease, Number: f.lease.Progress.Attempts + 1}
	if f.limited {
		attempt.Wrote = f.wrote
	}
	f.worker, f.outcome = w, f.s.cfg.Sender.Send(f.s.sending, attempt)
	f.next = (*flight).landed
	f.s.box.put(f)
}

// wrote tells the gate when the request left.
func (f *flight) wrote(at time.Time) {
	f.s.box.post(func() {
		f.line.gate.Left(f.permit, at)
		f.s.enqueue(f.line) // until now the gate could not say when the next one may leave
	})
}

// landed gives back what the attempt held, and decides what follows.
func (f *flight) landed() {
	s := f.s
	s.share.held[f.standing][f.rank]--
	s.count(f, -1)
	s.crew.rest(f.worker)
	s.ended(f)
}

// done is the spool's word on the result.
func (f *flight) done(err error) {
	f.err, f.next = err, (*flight).recorded
	f.s.box.put(f)
}
