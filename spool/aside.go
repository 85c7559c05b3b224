package spool

import (
	"log/slog"

	"postern/spool/internal/layout"
)

// asideOp moves an event that cannot be decoded out of the way, so that one bad record never holds up the others.
type asideOp struct {
	s     *Spool
	pick  pick
	cause error
	sound bool // the event can be sent
	anew  bool // its progress began anew
}

func (s *Spool) setAside(p pick, cause error) {
	// The endpoint's number is in the due key, the name is found by it when the operation runs.
	op := &asideOp{s: s, pick: p, cause: cause}
	if _, err := s.queue.add(op); err != nil {
		s.leases.remove(p.seq)
	}
}

func (op *asideOp) size() int     { return 1024 }
func (op *asideOp) lasting() bool { return false }

func (op *asideOp) settle(err error) {
	op.s.leases.remove(op.pick.seq)
	switch {
	case err != nil:
	case op.anew:
		op.s.cfg.Logger.Error("what was recorded of an event's attempts is damaged; they are counted from one again",
			slog.Uint64("seq", op.pick.seq), slog.Any("error", op.cause))
	case !op.sound:
		op.s.cfg.Logger.Error("an event's record is damaged; it was set aside and is not delivered",
			slog.Uint64("seq", op.pick.seq), slog.Any("error", op.cause))
	}
}

// versionAnew is above what the outbox has told of any event, and below lastVersion.
const versionAnew = lastVersion >> 1

// keep leaves an event where it is that can be sent: the reader's view was older than a change of keys, or only what was
// recorded of its attempts is damaged, which begins anew then. Somebody has to look again.
func (op *asideOp) keep(t *txn, ev *Event) {
	op.sound = true
	t.hints = append(t.hints, Committed{Endpoint: ev.Endpoint, DueAt: op.pick.due})
	if _, err := t.storedProgress(ev.Seq); err == nil {
		return
	}
	op.anew = true
	p := initialProgress(ev)
	p.version, p.NextAttempt = versionAnew, op.pick.due
	p.Attempts, p.Charged = 1, 1 // one at least, mostly: so it was counted
	t.put(layout.Progress, layout.SeqKey(ev.Seq), encodeProgress(&p))
	t.putDeadline(ev, p.Since)
}

func (op *asideOp) apply(t *txn) error {
	key := layout.SeqKey(op.pick.seq)
	rec := t.get(layout.Events, key)
	if ev, _, err := decodeEvent(op.pick.seq, rec, eventPayload, t.ring); err == nil {
		op.keep(t, ev)
		return nil
	}
	name, row := t.dueOwner(op.pick)
	if row != nil {
		t.delDue(row, op.pick.due, op.pick.seq)
	}
	if rec == nil {
		return nil
	}
	t.put(layout.Aside, key, append([]byte(nil), rec...))
	t.del(layout.Events, key)
	state := StatePending
	if prec := t.get(layout.Progress, key); prec != nil {
		if p, err := decodeProgress(op.pick.seq, prec); err != nil || p.tried() { // see keep
			state = StateFailed
		}
		t.del(layout.Progress, key)
	}
	if row != nil {
		t.endpoint(name).count(state, -1, eventBytes(rec))
	}
	t.counters.setAside++
	return nil
}

// dueOwner finds the endpoint whose index has the pick. The event's own record cannot tell any more.
func (t *txn) dueOwner(p pick) (string, *endpointRow) {
	for name, row := range t.s.endpointRows() {
		if t.get(layout.Due, layout.DueKey(row.id, p.due, p.seq)) != nil {
			return name, row
		}
	}
	return "", nil
}
