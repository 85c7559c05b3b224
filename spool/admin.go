package spool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"postern/spool/internal/layout"
)

// funcOp is a change that a caller waits for.
type funcOp struct {
	fn  func(*txn) error
	err error
}

func (op *funcOp) apply(t *txn) error { return op.fn(t) }
func (op *funcOp) settle(err error)   { op.err = err }
func (op *funcOp) size() int          { return 1024 }
func (op *funcOp) lasting() bool      { return false }

// do runs fn in the next transaction and waits for the disk. fn must not write before it is sure to return nil.
func (s *Spool) do(fn func(*txn) error) error {
	return s.doContext(context.Background(), fn)
}

func (s *Spool) doContext(ctx context.Context, fn func(*txn) error) error {
	if err := s.refusing(); err != nil {
		return err
	}
	op := &funcOp{fn: fn}
	at, err := s.queue.add(op)
	if err != nil {
		return err
	}
	select {
	case <-at.done:
		return op.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	}
}

// Retry makes an event due now, with its budget and TTL begun anew; attempts go on being counted. It serves waiting
// events and dead letters. The errors are ErrNotFound, ErrDelivered, ErrBusy, and those of a failed commit.
func (s *Spool) Retry(ctx context.Context, id string) error {
	return s.doContext(ctx, func(t *txn) error { return t.retryID(id) })
}

// RetryDead is Retry for dead letters alone: who chose the event from a list of dead letters must not hurry one that a
// twin of the call, or somebody else, has replayed meanwhile. The error is ErrNotDead then.
func (s *Spool) RetryDead(ctx context.Context, id string) error {
	return s.doContext(ctx, func(t *txn) error {
		if err := t.mustBeDead(id); err != nil {
			return err
		}
		return t.retryID(id)
	})
}

func (t *txn) retryID(id string) error {
	key, seq, err := t.claim(id)
	switch {
	case err != nil:
		return err
	case t.get(layout.Done, key) != nil:
		return ErrDelivered
	}
	ev, _, before, err := readWaiting(t.tx, seq, eventTarget, t.ring)
	if err != nil {
		return err
	}
	return t.retry(ev, before)
}

// mustBeDead refuses an event that is no dead letter as the transaction sees it.
func (t *txn) mustBeDead(id string) error {
	key := t.get(layout.IDs, layout.PackID(id))
	switch {
	case key == nil, t.isAside(key):
		return ErrNotFound
	case t.get(layout.Dead, key) == nil:
		return ErrNotDead
	}
	return nil
}

func (t *txn) retry(ev *Event, before progress) error {
	key := layout.SeqKey(ev.Seq)
	size := eventBytes(t.get(layout.Events, key))
	state := stateOf(&before)
	rec := t.get(layout.Dead, key)
	if rec != nil {
		dl, err := decodeDead(ev.Seq, rec)
		if err != nil {
			return err
		}
		before, state = dl.progress, StateDeadLetter
	}
	now := t.now.Truncate(time.Microsecond)
	after := before
	after.version++
	after.Charged, after.Since, after.NextAttempt, after.planned = 0, now, now, time.Time{}
	after.DeadReason, after.DeadAt = "", time.Time{}
	row := t.endpoint(ev.Endpoint)
	if state == StateDeadLetter {
		t.del(layout.Dead, key)
	} else {
		t.tellIfLost(ev, &before)
		t.delDue(row, before.NextAttempt, ev.Seq)
		t.delDeadline(ev, before.Since)
	}
	t.putDeadline(ev, now)
	row.count(state, -1, size)
	row.count(stateOf(&after), 1, size)
	t.underNewest(ev.Seq, &after)
	t.put(layout.Progress, key, encodeProgress(&after))
	t.putDue(row, now, ev.Seq)
	t.outbox(ev, &after, OutboxRow{State: stateOf(&after), NextAttempt: now})
	if !after.tried() {
		t.pend(ev.Seq)
	}
	t.hints = append(t.hints, Committed{Endpoint: ev.Endpoint, DueAt: now})
	return nil
}

// pend notes that an event is pending that was not before.
func (t *txn) pend(seq uint64) {
	if t.pendedAt == 0 || seq < t.pendedAt {
		t.pendedAt = seq
	}
}

// Delete drops an event, whatever its state, and every trace of it. The keys of one that was delivered stay in memory for
// the dedupe window; those of any other are forgotten, so that it is accepted when it is sent again. The errors are
// ErrNotFound, ErrBusy, and those of a failed commit.
func (s *Spool) Delete(ctx context.Context, id string) error {
	return s.doContext(ctx, func(t *txn) error { return t.deleteID(id) })
}

// DeleteDead is Delete for dead letters alone; the error is ErrNotDead for an event that is none (any more).
func (s *Spool) DeleteDead(ctx context.Context, id string) error {
	return s.doContext(ctx, func(t *txn) error {
		if err := t.mustBeDead(id); err != nil {
			return err
		}
		return t.deleteID(id)
	})
}

func (t *txn) deleteID(id string) error {
	key, seq, err := t.claim(id)
	if err != nil {
		return err
	}
	if rec := t.get(layout.Done, key); rec != nil {
		t.outboxForgotten(seq, rec)
		t.dropSummary(seq, rec)
		return nil
	}
	return t.drop(id, seq)
}

// drop removes an event that waits or is a dead letter.
func (t *txn) drop(id string, seq uint64) error {
	key := layout.SeqKey(seq)
	rec := t.get(layout.Events, key)
	dead := t.get(layout.Dead, key)
	ev, _, p, err := readWaiting(t.tx, seq, eventHeaders, t.ring)
	if err != nil {
		return err
	}
	row, state := t.endpoint(ev.Endpoint), stateOf(&p)
	if dead != nil {
		state = StateDeadLetter
		if dl, err := decodeDead(seq, dead); err == nil {
			p = dl.progress
		}
		t.del(layout.Dead, key)
	} else {
		t.tellIfLost(ev, &p)
		t.delDue(row, p.NextAttempt, seq)
		t.delDeadline(ev, p.Since)
	}
	row.count(state, -1, eventBytes(rec))
	t.del(layout.Events, key)
	t.del(layout.Progress, key)
	t.del(layout.IDs, layout.PackID(id))
	t.forgetKeys(ev)
	p.version++
	t.outbox(ev, &p, OutboxRow{Deleted: true, DeadReason: p.DeadReason})
	return nil
}

// claim finds an event by its ID and keeps it from being leased until the transaction has ended: a reader that began
// before would still see it as it was.
func (t *txn) claim(id string) (key []byte, seq uint64, err error) {
	key = t.get(layout.IDs, layout.PackID(id))
	seq, ok := layout.Seq(key)
	if !ok {
		return nil, 0, ErrNotFound
	}
	if t.isAside(key) {
		return nil, 0, ErrNotFound
	}
	if !t.reserve(seq) {
		return nil, 0, ErrBusy
	}
	return append([]byte(nil), key...), seq, nil
}

// reserve keeps an event from being leased until the transaction has ended; false means that it is out, or goes out with
// this very transaction.
func (t *txn) reserve(seq uint64) bool {
	if slices.Contains(t.reserved, seq) {
		return true
	}
	fresh := slices.ContainsFunc(t.fresh, func(l *Lease) bool { return l.Event.Seq == seq })
	if fresh || !t.s.leases.reserve(seq) {
		return false
	}
	t.reserved = append(t.reserved, seq)
	return true
}

// tellIfLost makes sure that somebody looks after a reserved event again if the transaction fails.
func (t *txn) tellIfLost(ev *Event, p *progress) {
	t.untold = append(t.untold, Committed{Endpoint: ev.Endpoint, DueAt: p.NextAttempt})
}

// reserve takes an event off the market without a lease; false means that it is out.
func (lt *leaseTable) reserve(seq uint64) bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	if _, out := lt.held[seq]; out {
		return false
	}
	lt.held[seq] = heldLease{finished: true}
	return true
}
