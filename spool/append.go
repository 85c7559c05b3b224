package spool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// appendTimeout is how long an acceptance may wait for its commit (contract section 1).
const appendTimeout = 10 * time.Second

// appendOp accepts one event.
type appendOp struct {
	ev          *Event
	rec         []byte
	ring        *keyring.Ring // that rec was made with
	fingerprint []byte        // only where the event can be a duplicate
	stage       atomic.Uint32
	tries       int    // how often history was dropped to make room for it
	outboxBody  []byte // what goes along into the outbox; nil: nothing

	result AppendResult
	err    error
}

// The stages of an appendOp. Whoever gives up waiting withdraws an operation that the committer has not begun.
const (
	stageQueued uint32 = iota
	stageTaken
	stageWithdrawn
)

var errWithdrawn = errors.New("withdrawn before it was begun")

// Append stores an event and returns when it is on disk. The spool owns ev and what it refers to from then on, whatever
// the outcome. ev needs an ID, an endpoint, a method and AcceptedAt; Seq is set. A duplicate of an earlier event is no
// error: the result then speaks of the first one. The errors are those that errors.go lists for Append; they are to be
// tested with errors.Is. Where ctx ends first, the error is ErrUnknownOutcome, or ErrUnwritable where nothing had begun.
func (s *Spool) Append(ctx context.Context, ev *Event) (AppendResult, error) {
	if err := s.checkEvent(ev); err != nil {
		return AppendResult{}, err
	}
	if err := s.refusing(); err != nil {
		return AppendResult{}, err
	}
	ev.AcceptedAt = ev.AcceptedAt.Truncate(time.Microsecond)
	ev.NotBefore = ev.NotBefore.Truncate(time.Microsecond)
	op := &appendOp{ev: ev, ring: s.ring()}
	op.rec = encodeEvent(ev, op.ring)
	if ev.ExplicitID || ev.IdempotencyKey != "" {
		op.fingerprint = fingerprint(ev)
	}
	if s.cfg.outboxTakes(ev.Body) {
		op.outboxBody = ev.Body
	}
	at, err := s.queue.add(op)
	if err != nil {
		return AppendResult{}, err
	}
	select {
	case <-at.done:
		return op.result, op.err
	case <-ctx.Done():
		return op.giveUp(at.done, ctx.Err())
	case <-at.late:
		return op.giveUp(at.done, fmt.Errorf("no commit within %v", appendTimeout))
	}
}

// giveUp ends the wait for an operation: what has begun may still be stored.
func (op *appendOp) giveUp(done <-chan struct{}, cause error) (AppendResult, error) {
	if op.stage.CompareAndSwap(stageQueued, stageWithdrawn) {
		return AppendResult{}, fmt.Errorf("%w: %w", ErrUnwritable, cause)
	}
	select {
	case <-done:
		return op.result, op.err
	default:
		return AppendResult{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, cause)
	}
}

func (s *Spool) checkEvent(ev *Event) error {
	switch {
	case ev.ID == "" || len(ev.ID) > 128:
		return fmt.Errorf("append: the event ID has %d bytes: 1 to 128 work", len(ev.ID))
	case ev.Endpoint == "":
		return errors.New("append: the event names no endpoint")
	case len(ev.Endpoint) > maxEndpointName:
		return fmt.Errorf("append: the endpoint's name has %d bytes: at most %d work", len(ev.Endpoint), maxEndpointName)
	case int64(len(ev.Body)) > s.cfg.MaxEventBytes:
		return fmt.Errorf("append: the body has %d bytes: at most %d work", len(ev.Body), s.cfg.MaxEventBytes)
	}
	return nil
}

// maxEndpointName is far above any host name and far below what bbolt takes as a key.
const maxEndpointName = 4096

func (op *appendOp) size() int     { return len(op.rec) + eventOverhead + len(op.outboxBody) }
func (op *appendOp) lasting() bool { return false }

func (op *appendOp) settle(err error) {
	if op.err = err; err != nil {
		op.result = AppendResult{}
	}
}

func (op *appendOp) apply(t *txn) error {
	if !op.stage.CompareAndSwap(stageQueued, stageTaken) && op.stage.Load() == stageWithdrawn {
		return errWithdrawn
	}
	if first, err := t.findDuplicate(op); err != nil || first != nil {
		if err != nil {
			return err
		}
		op.result = *first
		return nil
	}
	if op.ring != t.ring { // the keys were changed while it waited: no record may follow under an old one
		op.rec, op.ring = encodeEvent(op.ev, t.ring), t.ring
	}
	if err := t.admit(op); err != nil {
		return err
	}
	op.store(t)
	return nil
}

// admit refuses what would not fit.
func (t *txn) admit(op *appendOp) error {
	size := eventBytes(op.rec)
	var used int64
	if row := t.peekEndpoint(op.ev.Endpoint); row != nil {
		used = row.bytes
	}
	if limit := t.s.cfg.endpointLimit(); used+size > limit {
		t.s.tellShareFull(op.ev.Endpoint, used, limit)
		return fmt.Errorf("%w: %d of %d bytes are used", ErrEndpointFull, used, limit)
	}
	return t.room.take(size + int64(len(op.outboxBody)))
}

func (op *appendOp) store(t *txn) {
	ev := op.ev
	ev.Seq = t.counters.nextSeq
	t.counters.nextSeq++
	key := layout.SeqKey(ev.Seq)
	row := t.endpoint(ev.Endpoint)
	row.count(StatePending, 1, eventBytes(op.rec))
	p := initialProgress(ev)
	t.put(layout.Events, key, op.rec)
	t.putDue(row, p.NextAttempt, ev.Seq)
	t.scratch = layout.AppendID(t.scratch[:0], ev.ID)
	t.put(layout.IDs, t.scratch, key)
	t.putDeadline(ev, p.Since)
	t.remember(op)
	t.outbox(ev, &p, OutboxRow{State: StatePending, NextAttempt: p.NextAttempt, Body: op.outboxBody})
	op.result = AppendResult{ID: ev.ID, Endpoint: ev.Endpoint, State: StatePending}
	if t.s.cfg.Committed == nil {
		return
	}
	if p.NextAttempt.After(t.now) {
		t.hints = append(t.hints, Committed{Endpoint: ev.Endpoint, DueAt: p.NextAttempt})
		return
	}
	lease := &Lease{Event: ev, Progress: p.Progress, Fresh: true, version: p.version}
	t.fresh = append(t.fresh, lease)
	t.hints = append(t.hints, Committed{Endpoint: ev.Endpoint, DueAt: p.NextAttempt, Lease: lease})
}
