package spool

import (
	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// Standing returns how the events stand that wait or were given up, in the form of outbox rows without index, target and
// body: from a sequence number on, the longest accepted first, up to max of them, and fewer where their bodies are big.
// next is where to go on, 0 at the end. A record that cannot be decoded is left out. It is for a central store that has
// not heard of them: the outbox tells what changes, and nothing that was there before there was an outbox.
func (s *Spool) Standing(from uint64, max int) (rows []OutboxRow, next uint64, err error) {
	err = s.store.view(func(tx *bolt.Tx) error {
		r := s.newReader(tx, nil)
		bytes := int64(0)
		c := r.events.Cursor()
		for k, v := c.Seek(layout.SeqKey(from)); k != nil; k, v = c.Next() {
			seq, ok := layout.Seq(k)
			if !ok {
				continue
			}
			if len(rows) >= max || bytes >= outboxReadBytes {
				next = seq
				return nil
			}
			if row, size, err := r.standing(seq, v); err == nil {
				rows, bytes = append(rows, row), bytes+size
			}
		}
		return nil
	})
	return rows, next, err
}

// standing is the row that would have been written with the event's latest change. A dead letter is beside its event.
func (r *reader) standing(seq uint64, rec []byte) (row OutboxRow, size int64, err error) {
	ev, size, err := decodeEvent(seq, rec, eventHead, r.s.ring())
	if err != nil {
		return row, 0, err
	}
	p, state := initialProgress(ev), StatePending
	if dead := r.dead.Get(layout.SeqKey(seq)); dead != nil {
		dl, err := decodeDead(seq, dead)
		if err != nil {
			return row, 0, err
		}
		p, state = dl.progress, StateDeadLetter
	} else if prec := r.prog.Get(layout.SeqKey(seq)); prec != nil {
		if p, err = decodeProgress(seq, prec); err != nil {
			return row, 0, err
		}
		state = stateOf(&p)
	}
	row = OutboxRow{
		EventID: ev.ID, Version: p.version, Endpoint: ev.Endpoint, Named: ev.Named, State: state, Attempts: p.Attempts,
		MaxAttempts: ev.MaxAttempts, AcceptedAt: ev.AcceptedAt, NextAttempt: p.NextAttempt, DeadReason: p.DeadReason, DeadAt: p.DeadAt,
	}
	if n := len(p.History); n > 0 {
		row.Attempt = &p.History[n-1]
	}
	return row, size, nil
}
