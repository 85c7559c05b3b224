package spool

import (
	"errors"
	"time"

	"postern/spool/internal/layout"
)

// History is what is kept for people to look at: summaries and the outbox. It lives within a limit of its own, loses the
// oldest first, and gives way whenever an event needs its room.

const (
	// historyStep is how many rows a transaction drops at least, when it must: more than one operation adds, so that
	// the limit is always reached again.
	historyStep = 64
	// sweepRows bounds what one pass over old rows looks at.
	sweepRows = 5000
	// sweepDrops bounds what it removes of each kind: a transaction stays small.
	sweepDrops = 500
	// endpointIdle is how long the row of an endpoint without events is kept.
	endpointIdle = time.Hour
)

// limitHistory keeps history within its limits.
func (t *txn) limitHistory(ops int) {
	c := &t.counters
	cfg := &t.s.cfg
	if c.idemBytes > cfg.dedupeLimit() {
		// Two for each that came, so that the sweep need not outrun a flood; none for results, since keys lie all over
		// their bucket, and each takes a page of the reserve.
		t.expireKeys(2 * t.keys)
	}
	t.spareResults()
	budget := historyStep + 3*ops
	for budget > 0 && c.outboxRows > 0 && c.outboxBytes > cfg.outboxLimit() {
		budget -= t.dropOldest(layout.Outbox, min(budget, historyStep))
	}
	for budget > 0 && c.doneBytes+c.outboxBytes > cfg.historyLimit() {
		n := t.dropOldest(layout.Done, min(budget, historyStep))
		if n == 0 {
			n = t.dropOldest(layout.Outbox, min(budget, historyStep))
		}
		if n == 0 {
			return
		}
		budget -= n
	}
}

// dropOldest drops rows for want of room and counts them.
func (t *txn) dropOldest(id layout.Bucket, limit int) (n int) {
	if id == layout.Outbox {
		n = t.dropOutbox(limit, func(uint64) bool { return true })
	} else {
		n = t.dropSummaries(limit)
	}
	t.counters.historyDropped += int64(n)
	return n
}

func (t *txn) dropSummaries(limit int) int {
	type row struct {
		seq uint64
		rec []byte
	}
	var rows []row
	c := t.bucket(layout.Done).Cursor()
	for k, v := c.First(); k != nil && len(rows) < limit; k, v = c.Next() {
		if seq, ok := layout.Seq(k); ok {
			rows = append(rows, row{seq, v})
		}
	}
	for _, r := range rows {
		t.dropSummary(r.seq, r.rec)
	}
	return len(rows)
}

// dropSummary removes the last trace of a delivered event.
func (t *txn) dropSummary(seq uint64, rec []byte) {
	key := layout.SeqKey(seq)
	t.counters.doneBytes -= rowBytes(key, rec)
	if sum, err := decodeSummary(seq, rec); err == nil {
		t.del(layout.IDs, layout.PackID(sum.id))
		if name := t.s.endpointName(sum.endpoint); name != "" {
			t.endpoint(name).count(StateDelivered, -1, 0)
		}
	}
	t.del(layout.Done, key)
}

// errDropFirst answers an acceptance for which room is being made: it is tried again at once.
var errDropFirst = errors.New("room is being made")

// dropTries bounds how often: what one transaction frees, the second one after it can use.
const dropTries = 3

// applyOne applies an operation; an acceptance that finds no room makes a copy of the file give way first, then history.
func (t *txn) applyOne(op operation) error {
	err := op.apply(t)
	a, ok := op.(*appendOp)
	if !ok || !errors.Is(err, ErrFull) || a.tries >= dropTries {
		return err
	}
	if t.s.compaction.current != nil {
		t.deferred = append(t.deferred, op)
		return errDropFirst
	}
	a.tries++
	if !t.giveWay(cost(eventBytes(a.rec))) && a.tries == 1 {
		return err
	}
	t.deferred = append(t.deferred, op)
	return errDropFirst
}

// giveWay drops history until what this transaction was asked for is free several times over, since pages are freed only
// when all their rows are gone. It tells whether there was anything to drop.
func (t *txn) giveWay(n int64) bool {
	if t.wanted == 0 {
		t.wanted = 32 * pageSize
	}
	t.wanted += 4 * n
	any := t.gaveWay > 0
	for t.gaveWay < t.wanted {
		before := t.counters.doneBytes + t.counters.outboxBytes
		if t.dropOldest(layout.Done, historyStep)+t.dropOldest(layout.Outbox, historyStep) == 0 {
			break
		}
		t.gaveWay += before - t.counters.doneBytes - t.counters.outboxBytes
		any = true
	}
	return any
}

// wantRoom returns the acceptances that are to be tried again.
func (s *Spool) wantRoom() []operation {
	ops := s.deferred
	s.deferred = nil
	if len(ops) > 0 {
		s.takeRoomBack()
	}
	return ops
}
