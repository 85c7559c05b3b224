package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"postern/proxy/delivery"
	"postern/proxy/ingest"
	"postern/proxy/retry"
	"postern/proxy/scheduler"
	"postern/spool"
)

// sender joins scheduler and delivery: it looks the endpoint's policy up at each attempt, so that a corrected
// configuration reaches waiting events, and answers whoever waits for the first attempt.
type sender struct {
	book    *book
	chain   delivery.Sender
	waiters *waiters
	log     *slog.Logger

	exhaustedAt atomic.Int64 // when that was last said, in seconds
}

// Send makes one attempt.
func (s *sender) Send(ctx context.Context, a scheduler.Attempt) scheduler.Outcome {
	e := s.book.find(a.Lease.Event.Endpoint)
	if e == nil {
		// It left the configuration between the decision and now: the event goes back as if it had not been tried.
		return scheduler.Outcome{Cut: true, Unsent: true}
	}
	if brokeLast(a.Lease) {
		// Kept connections to this receiver may be as stale as the one that broke: this attempt gets a fresh one.
		e.client.Close()
	}
	result := s.chain.Send(ctx, &delivery.Job{
		Event: a.Lease.Event, Number: a.Number, Endpoint: e.endpoint,
		WantBody: s.waiters.wanted(a.Lease.Event.ID), OnWrote: a.Wrote,
	})
	if result.Exhausted {
		s.sayExhausted()
	}
	if !result.Cut {
		s.waiters.answer(a.Lease.Event.ID, result)
	}
	return scheduler.Outcome{
		Attempt: result.Attempt, Class: result.Class, RetryAfter: result.RetryAfter, HasRetryAfter: result.HasRetryAfter,
		Answer: result.Answer, Cut: result.Cut, Exhausted: result.Exhausted, Unsent: result.Unsent, Stale: result.Stale, Sampled: result.Sampled,
	}
}

// sayExhausted tells the operator, once in a while, why nothing can be sent.
func (s *sender) sayExhausted() {
	now := time.Now().Unix()
	if last := s.exhaustedAt.Load(); now-last < 30 || !s.exhaustedAt.CompareAndSwap(last, now) {
		return
	}
	s.log.Error("connections to receivers cannot be opened: this machine has no file descriptor, port or memory left for them. " +
		"Waiting events are kept and not charged; raise the limit (ulimit -n)")
}

// brokeLast tells whether the event's last attempt ended in a broken connection.
func brokeLast(l *spool.Lease) bool {
	n := len(l.Progress.History)
	return n > 0 && l.Progress.History[n-1].Error == string(retry.Connection)
}

// waiters are the clients that asked with Prefer: wait how the first attempt of their event ends.
type waiters struct {
	some    atomic.Bool // somebody waits: mostly nobody does, and every attempt asks
	mu      sync.Mutex  // guards waiting
	waiting map[string]chan ingest.Answer
}

func newWaiters() *waiters { return &waiters{waiting: map[string]chan ingest.Answer{}} }

// Wait registers interest. An ID that is waited for already gets a channel that never answers: it can only be a
// duplicate, which ingest answers at once.
func (w *waiters) Wait(eventID string) (<-chan ingest.Answer, func()) {
	c := make(chan ingest.Answer, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.waiting[eventID]; taken {
		return c, func() {}
	}
	w.waiting[eventID] = c
	w.some.Store(true)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.waiting[eventID] == c {
			w.removeLocked(eventID)
		}
	}
}

func (w *waiters) removeLocked(eventID string) {
	delete(w.waiting, eventID)
	w.some.Store(len(w.waiting) > 0)
}

func (w *waiters) wanted(eventID string) bool {
	if !w.some.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.waiting[eventID]
	return ok
}

func (w *waiters) answer(eventID string, r delivery.Result) {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	c, ok := w.waiting[eventID]
	w.removeLocked(eventID)
	w.mu.Unlock()
	if !ok {
		return
	}
	answer := ingest.Answer{Delivered: r.Class == retry.Delivered}
	if r.Response != nil {
		answer.Status, answer.Headers, answer.Body, answer.TooBig = r.Response.Status, r.Response.Headers, r.Response.Body, r.Response.TooBig
	}
	c <- answer
}

// rememberSamples feeds the percentiles from history in the background: they cover 24 hours, across restarts too. What
// was tried since this process began is known already.
func (a *app) rememberSamples(ctx context.Context, began time.Time) {
	batch := make([]scheduler.Sample, 0, 512)
	err := a.spool.Samples(time.Now().Add(-24*time.Hour), func(s spool.Sample) bool {
		if s.StartedAt.Before(began) && (s.StatusCode > 0 || s.Error == string(retry.Timeout)) {
			batch = append(batch, scheduler.Sample{Endpoint: s.Endpoint, At: s.StartedAt, Duration: s.Duration})
		}
		if len(batch) == cap(batch) {
			a.scheduler.Remember(batch)
			batch = make([]scheduler.Sample, 0, 512)
		}
		return ctx.Err() == nil
	})
	if err != nil {
		a.log.Warn("reading the attempt history failed; percentiles begin anew", "error", err)
	}
	a.scheduler.Remember(batch)
}
