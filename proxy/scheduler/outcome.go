package scheduler

import (
	"math/rand/v2"
	"time"

	"postern/limiter"
	"postern/limiter/breaker"
	"postern/proxy/retry"
	"postern/spool"
)

// ended decides what follows an attempt and hands it to the spool.
func (s *Scheduler) ended(f *flight) {
	l, lease, permit, o := f.line, f.lease, f.permit, &f.outcome
	now := s.clock.now()
	l.lastUsed = now
	defer func() {
		s.uncrowd() // first: who waits for the slot comes before who had it
		s.enqueue(l)
	}()
	if o.Cut {
		if o.Exhausted {
			l.heldUntil = now.Add(exhaustedPause)
		}
		l.gate.Report(permit, limiter.Outcome{Kind: limiter.Neutral, Unsent: o.Unsent}, now)
		s.cfg.Store.Release(lease)
		l.dueOnDisk(dueTime(lease))
		return
	}
	l.tried, l.slow = true, o.Attempt.Duration >= slowAttempt
	l.answered = l.answered || o.Attempt.StatusCode > 0 && o.Attempt.StatusCode != 429
	if o.Sampled {
		l.latency.Add(now, o.Attempt.Duration)
	}
	l.learnLatency(now, o.Class != "")
	o.Stale = o.Stale && !brokeTwice(lease)
	d := decide(l, lease, o, now)
	changed := l.gate.Report(permit, gateOutcome(l.policy.Retry, o, d), now)
	if d.Reason == retry.ReasonGone && l.policy.Named {
		l.gate.Pause("the receiver answered 410 Gone", now)
		changed = true
	}
	result := spool.Result{
		Attempt: &o.Attempt, Verdict: verdict(d.Verdict), NextAttempt: now.Add(d.Delay), PlannedAt: now,
		Reason: string(d.Reason), Answer: o.Answer,
	}
	if changed {
		result.EndpointState = l.gate.State()
		s.tell(l, now)
	}
	s.finish(f, result)
}

// verdict says it in the spool's words.
func verdict(v retry.Verdict) spool.Verdict {
	switch v {
	case retry.VerdictDelivered:
		return spool.VerdictDelivered
	case retry.VerdictRetry:
		return spool.VerdictRetry
	}
	return spool.VerdictDead
}

// brokeTwice tells whether the event's last two attempts ended in a broken connection. A third time in a row is no
// accident of connection reuse any more: a receiver that refuses every HTTP/2 stream is to be left in peace.
func brokeTwice(lease *spool.Lease) bool {
	history := lease.Progress.History
	n := len(history)
	return n > 1 && history[n-1].Error == string(retry.Connection) && history[n-2].Error == string(retry.Connection)
}

// decide asks package retry. A break on a kept-alive connection that the receiver had closed already is tried again at
// once: the receiver never saw that request, and waiting for it would punish the event for our connection reuse.
func decide(l *line, lease *spool.Lease, o *Outcome, now time.Time) retry.Decision {
	d := retry.Decide(l.policy.Retry, retry.Input{
		Class: o.Class, Status: o.Attempt.StatusCode,
		Charged: lease.Progress.Charged + 1, MaxAttempts: lease.Event.MaxAttempts,
		Since: lease.Progress.Since, TTL: lease.Event.TTL, Now: now,
		RetryAfter: o.RetryAfter, HasRetryAfter: o.HasRetryAfter, Rand: rand.Int64N,
	})
	if o.Stale && d.Verdict == retry.VerdictRetry {
		d.Delay = 0
	}
	return d
}

// gateOutcome says how the limiter is to take an outcome (contract section 3).
func gateOutcome(p retry.Policy, o *Outcome, d retry.Decision) limiter.Outcome {
	kind := limiter.Cleared
	status := o.Attempt.StatusCode
	switch {
	case o.Class == "":
		kind = limiter.Success
	case o.Stale, o.Class == retry.BlockedAddress, o.Class == retry.InvalidRequest:
		kind = limiter.Neutral
	case status == 429:
		return limiter.Outcome{Kind: limiter.Throttled, Wait: throttleWait(p, o, d), Unsent: o.Unsent}
	case p.Outcome(o.Class, status) == retry.OutcomeTransient, status == 401, status == 403, status == 404:
		kind = limiter.Failure
	}
	return limiter.Outcome{Kind: kind, Unsent: o.Unsent}
}

// throttleWait is how long a 429 stops the whole endpoint: what Retry-After asks for within its cap; where the answer
// names no time, as long as its own event waits, so that a backlog is not burnt on an endpoint that said "too many".
func throttleWait(p retry.Policy, o *Outcome, d retry.Decision) time.Duration {
	if o.HasRetryAfter {
		return p.RetryAfterFloor(o.Attempt.StatusCode, o.RetryAfter, true)
	}
	return d.Delay
}

// shown is the part of a gate's state whose changes people want to hear of; the count of failures is not.
type shown struct {
	breaker           breaker.State
	paused, throttled bool
}

// tell has the observer hear of a change, once.
func (s *Scheduler) tell(l *line, now time.Time) {
	snapshot := l.gate.Snapshot(now)
	next := shown{snapshot.Breaker, snapshot.Paused, snapshot.Throttled}
	if next != l.shown {
		l.shown = next
		s.cfg.Observer.Changed(l.name, snapshot)
	}
}

// expired gives up an event whose TTL passed while it waited.
func (s *Scheduler) expired(l *line, lease *spool.Lease, now time.Time) bool {
	ttl := lease.Event.TTL
	if ttl <= 0 || now.Before(lease.Progress.Since.Add(ttl)) {
		return false
	}
	s.finish(&flight{s: s, line: l, lease: lease}, spool.Result{Verdict: spool.VerdictDead, Reason: spool.ReasonExpired})
	return true
}

// finish writes a result, and tells of it once it is on disk.
func (s *Scheduler) finish(f *flight, r spool.Result) {
	s.unrecorded++
	r.Done = f.done
	f.result = r
	s.cfg.Store.Finish(f.lease, r)
}

// recorded tells of a result that is on disk.
func (f *flight) recorded() {
	s, l, r := f.s, f.line, &f.result
	s.unrecorded--
	if f.err != nil {
		return
	}
	told := Told{Lease: f.lease, Outcome: f.outcome, Verdict: r.Verdict, Reason: r.Reason, Recorded: s.clock.now()}
	if r.Verdict == spool.VerdictRetry {
		told.Next = r.NextAttempt
		l.dueOnDisk(r.NextAttempt)
		s.enqueue(l)
	}
	if r.Attempt != nil {
		told.Result = l.policy.Retry.Outcome(f.outcome.Class, f.outcome.Attempt.StatusCode)
	}
	s.cfg.Observer.Told(told)
}

// exhaustedPause is how long a line waits after this machine had no descriptor left for it.
const exhaustedPause = time.Second

// How often the slow threshold's p95 is taken anew: at each failure, since that is when it decides, and now and then. The
// samples are sorted for it, 5,000 of them in 0.3 ms, and with many it moves slowly: each sample puts the next time off, so
// that a thousand busy endpoints do not spend their time on it. From manySamples on not even a failure hastens it.
const (
	p95Every     = time.Second
	p95EverySome = 3 * time.Millisecond // for each sample
	p95EveryMany = 15 * time.Second
	manySamples  = 5000
)

// learnLatency tells the gate the p95 of the sliding 24 hours.
func (l *line) learnLatency(now time.Time, failed bool) {
	pause := min(max(time.Duration(l.samples)*p95EverySome, p95Every), p95EveryMany)
	if now.Sub(l.lastP95) < pause && !(failed && l.samples < manySamples) {
		return
	}
	summary := l.latency.Quantiles(now)
	l.lastP95, l.samples = now, summary.Count
	l.gate.SetLatency(summary.P95, summary.Count)
}
