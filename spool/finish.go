package spool

import (
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// finishOp records what became of an attempt.
type finishOp struct {
	s      *Spool
	lease  *Lease
	result Result
}

// Finish ends a lease with the result of its attempt. It never blocks: the result is kept in memory until it is on disk,
// and the event stays leased as long. Of a lease that was ended before, or was never given out, nothing is recorded: Done
// is called with ErrLeaseEnded, before Finish returns, so that whoever counts what is open is never left waiting.
func (s *Spool) Finish(l *Lease, r Result) {
	if !s.leases.end(l) {
		if r.Done != nil {
			r.Done(ErrLeaseEnded)
		}
		return
	}
	op := &finishOp{s: s, lease: l, result: r}
	if _, err := s.queue.add(op); err != nil {
		op.settle(ErrClosed)
	}
}

func (op *finishOp) lasting() bool { return true }

func (op *finishOp) size() int {
	n := 512
	if op.result.Answer != nil {
		n += len(op.result.Answer.Body) + len(op.result.Answer.Location)
	}
	return n + len(op.result.EndpointState)
}

func (op *finishOp) settle(err error) {
	if err != nil {
		op.s.leases.remove(op.lease.Event.Seq)
	}
	if op.result.Done != nil {
		op.result.Done(err)
	}
}

func (op *finishOp) apply(t *txn) error {
	ev := op.lease.Event
	t.ended = append(t.ended, ev.Seq)
	key := layout.SeqKey(ev.Seq)
	rec := t.get(layout.Events, key)
	if rec == nil || t.get(layout.Dead, key) != nil {
		return nil // recorded already: a commit that was reported as failed was on disk after all
	}
	before, err := t.storedProgress(ev.Seq)
	stored := before != nil || err != nil
	switch {
	case err != nil || before == nil:
		before = &progress{Progress: op.lease.Progress, version: op.lease.version}
	case before.version != op.lease.version:
		return nil // likewise
	}
	if state := op.result.EndpointState; state != nil {
		t.putState(ev.Endpoint, state) // not where it was recorded already: a newer one may have come since
	}
	after := op.progressAfter(*before, t.ring)
	if op.result.Verdict != VerdictDelivered {
		t.underNewest(ev.Seq, after)
		t.slim(after)
	}
	t.results++
	m := move{
		t: t, ev: ev, size: int64(len(ev.Body)), key: key, rec: rec,
		before: before, after: after, stored: stored, due: op.lease.Progress.NextAttempt,
	}
	switch op.result.Verdict {
	case VerdictDelivered:
		m.delivered(t.now)
	case VerdictDead:
		m.dead()
	default:
		m.again()
	}
	m.outbox(op.result.Attempt)
	t.countMinute(&op.result)
	return nil
}

// progressAfter is the event's progress with the attempt in it.
func (op *finishOp) progressAfter(p progress, ring *keyring.Ring) *progress {
	r := &op.result
	p.version++
	if r.Attempt != nil {
		a := *r.Attempt
		a.StartedAt = a.StartedAt.Truncate(time.Microsecond)
		p.Attempts++
		p.Charged++
		p.History = withAttempt(p.History, a)
		p.setAnswer(op.lease.Event.Seq, r.Answer, ring)
	}
	p.NextAttempt = r.NextAttempt.Truncate(time.Microsecond)
	p.planned = op.otherClock()
	if r.Verdict == VerdictDead {
		p.DeadReason = r.Reason
		p.DeadAt = op.s.now().Truncate(time.Microsecond)
		p.NextAttempt = time.Time{}
	}
	return &p
}

// otherClock is when a retry was planned, where that was by another clock than the attempt's start: one that was set
// meanwhile, or that runs on evenly while the wall clock was set back. A later redate could not tell otherwise.
func (op *finishOp) otherClock() time.Time {
	r := &op.result
	if r.Verdict != VerdictRetry || r.Attempt == nil || r.PlannedAt.IsZero() {
		return time.Time{}
	}
	planned := r.PlannedAt.Round(0)
	if planned.Sub(r.Attempt.StartedAt.Round(0).Add(r.Attempt.Duration)).Abs() < redateLeast {
		return time.Time{}
	}
	return planned.Truncate(time.Microsecond)
}

// move is one event on its way from where it waits to where it is next.
type move struct {
	t             *txn
	ev            *Event
	size          int64 // of its body
	key, rec      []byte
	before, after *progress
	stored        bool // there is a record of before
	due           time.Time
	state         State // after the move
}

func stateOf(p *progress) State {
	if p.tried() {
		return StateFailed
	}
	return StatePending
}

// leave takes the event off the list of what waits.
func (m *move) leave() *endpointRow {
	row := m.t.endpoint(m.ev.Endpoint)
	row.count(stateOf(m.before), -1, eventBytes(m.rec))
	if m.stored {
		m.t.del(layout.Progress, m.key)
	}
	m.t.delDue(row, m.due, m.ev.Seq)
	m.t.delDeadline(m.ev, m.before.Since)
	return row
}

func (m *move) delivered(now time.Time) {
	var print []byte
	if m.ev.ExplicitID {
		print = m.t.blind.hash(fingerprint(m.ev))
	}
	row := m.leave()
	row.count(StateDelivered, 1, 0)
	rec := encodeSummary(&summary{
		id: m.ev.ID, explicit: m.ev.ExplicitID, endpoint: row.id, named: m.ev.Named, method: m.ev.Method,
		acceptedAt: m.ev.AcceptedAt, deliveredAt: now.Truncate(time.Microsecond), size: m.size,
		attempts: m.after.Attempts, charged: m.after.Charged, fingerprint: print, history: m.after.History,
	})
	m.t.del(layout.Events, m.key)
	m.t.put(layout.Done, m.key, rec)
	m.t.counters.doneBytes += rowBytes(m.key, rec)
	m.state = StateDelivered
}

// dead leaves the payload where it is: moving it would need room of its own, which a full spool does not have.
func (m *move) dead() {
	row := m.leave()
	row.count(StateDeadLetter, 1, eventBytes(m.rec))
	head := *m.ev
	head.Target = listedTarget(m.ev)
	if m.t.ring.Seals() && head.Named {
		head.Target = "" // it is sealed with the event
	}
	m.t.underNewest(m.ev.Seq, m.after)
	rec := encodeDead(&deadLetter{event: head, size: m.size, progress: *m.after})
	m.t.put(layout.Dead, m.key, rec)
	m.t.deadBytes += len(rec)
	m.state = StateDeadLetter
}

// again leaves the event where it is, due at another time.
func (m *move) again() {
	row := m.t.endpoint(m.ev.Endpoint)
	size := eventBytes(m.rec)
	row.count(stateOf(m.before), -1, size)
	row.count(stateOf(m.after), 1, size)
	m.t.delDue(row, m.due, m.ev.Seq)
	m.t.putDue(row, m.after.NextAttempt, m.ev.Seq)
	m.t.put(layout.Progress, m.key, encodeProgress(m.after))
	m.state = stateOf(m.after)
}

func (m *move) outbox(a *Attempt) {
	row := OutboxRow{State: m.state, Attempt: a, NextAttempt: m.after.NextAttempt, DeadReason: m.after.DeadReason}
	if m.state == StateDelivered {
		row.NextAttempt, row.DeliveredAt = time.Time{}, m.t.now.Truncate(time.Microsecond)
	}
	m.t.outbox(m.ev, m.after, row)
}

// storedProgress reads the progress record, nil where there is none.
func (t *txn) storedProgress(seq uint64) (*progress, error) {
	rec := t.get(layout.Progress, layout.SeqKey(seq))
	if rec == nil {
		return nil, nil
	}
	p, err := decodeProgress(seq, rec)
	return &p, err
}
