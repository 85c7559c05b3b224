package spool

import (
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"
)

// errNothing ends a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

// commit runs the operations in one transaction. After an error none of them is settled.
func (s *Spool) commit(ops []operation) error {
	start := time.Now()
	c := &s.committer
	c.errs = append(c.errs[:0], make([]error, len(ops))...)
	var t *txn
	err := s.store.update(func(tx *bolt.Tx) error {
		t = s.newTxn(tx)
		return t.run(ops, c.errs)
	})
	if errors.Is(err, errNothing) {
		err = nil
	} else if err == nil {
		s.compaction.lastWrite = time.Now()
		s.cfg.ObserveCommit(time.Since(start))
	}
	s.afterTxn(t, err)
	if err != nil {
		return err
	}
	for i, op := range ops {
		if !errors.Is(c.errs[i], errDropFirst) {
			op.settle(c.errs[i])
		}
	}
	s.tellCommitted(t)
	return nil
}

// tellCommitted hands on what a commit brought.
func (s *Spool) tellCommitted(t *txn) {
	if s.cfg.Committed != nil && len(t.hints) > 0 {
		s.cfg.Committed(t.hints)
	}
	if s.cfg.Expired != nil && len(t.expired) > 0 {
		s.cfg.Expired(t.expired)
	}
}

func (t *txn) run(ops []operation, errs []error) error {
	for i, op := range ops {
		errs[i] = t.applyOne(op)
		if t.err != nil {
			return t.err
		}
	}
	t.limitHistory(len(ops))
	if err := t.flush(); err != nil {
		return err
	}
	if !t.dirty {
		return errNothing
	}
	if err := t.s.notClean(); err != nil {
		return err
	}
	// From the commit on a reader sees these events as due: they must be out by then.
	t.s.leases.add(t.fresh)
	return nil
}

// afterTxn moves memory to where the disk is.
func (s *Spool) afterTxn(t *txn, err error) {
	if t == nil {
		return
	}
	visible := isVisible(err)
	if err != nil {
		for _, l := range t.fresh {
			s.leases.remove(l.Event.Seq)
		}
	}
	s.leases.remove(t.reserved...)
	if err == nil || visible {
		s.publish(t)
	}
	switch {
	case visible:
		// What those who were refused sent is there all the same, and due: somebody has to look.
		for i := range t.hints {
			t.hints[i].Lease = nil
		}
		s.tellCommitted(t)
	case err != nil && s.cfg.Committed != nil && len(t.untold) > 0:
		s.cfg.Committed(t.untold)
	case err == nil:
		s.sweep = t.sweep
		s.leases.remove(t.ended...)
		s.deferred = append(s.deferred, t.deferred...)
	}
	if merr := s.store.guard(s.store.measure); merr == nil {
		s.room.recheck()
		s.noteSpace()
		s.watchCompaction()
	}
}
