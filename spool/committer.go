package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	bolt "go.etcd.io/bbolt"
)

// tickEvery is how often the committer looks after what nobody asks for: retention, room, compaction.
const tickEvery = time.Second

// committer is the state of the one goroutine that writes. Nobody else touches it.
type committer struct {
	kept    []operation // results that the disk refused
	backoff backoff
	started bool // the directory no longer counts as cleanly closed
	errs    []error
}

// run is the committer. It ends when the spool closes and nothing is left to be tried.
func (s *Spool) run() {
	defer close(s.stopped)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		select {
		case <-s.queue.wake:
		case <-retry.C:
		case <-tick.C:
			s.housekeep()
		case c := <-s.compaction.ready:
			s.finishRound(c)
		case <-s.closing:
			s.lastCommits()
			return
		}
		s.work()
		if s.failing() {
			retry.Reset(time.Until(s.committer.backoff.until))
		}
	}
}

// work commits whatever waits.
func (s *Spool) work() {
	for {
		if s.failing() && !s.recover() {
			s.refuseQueued()
			return
		}
		b := s.queue.take()
		if b == nil {
			return
		}
		s.commitBatch(b)
	}
}

func (s *Spool) failing() bool { return s.committer.backoff.wait > 0 }

// recover tries the disk again once the wait is over: first with a write that changes nothing, then with what is kept.
func (s *Spool) recover() bool {
	c := &s.committer
	if time.Now().Before(c.backoff.until) {
		return false
	}
	err := s.store.probe()
	if err == nil {
		err = s.commitKept()
	}
	if err != nil {
		s.fail(err)
		return false
	}
	c.backoff.reset()
	s.setWritable(true, nil)
	return true
}

// probe writes what is there already, and then commits next to nothing.
func (st *store) probe() error {
	if st.damaged.Load() {
		return errDamaged
	}
	if err := st.sync(); err != nil {
		return err
	}
	return st.update(touch)
}

// refuseQueued answers what waits while the disk refuses; results are kept.
func (s *Spool) refuseQueued() {
	for b := s.queue.take(); b != nil; b = s.queue.take() {
		s.refuse(b.ops, ErrUnwritable)
		close(b.done)
	}
}

// refuse settles what does not last and keeps the rest.
func (s *Spool) refuse(ops []operation, err error) {
	for _, op := range ops {
		if op.lasting() {
			s.committer.kept = append(s.committer.kept, op)
			continue
		}
		op.settle(err)
	}
}

// commitBatch commits a batch, without what does not last if need be.
func (s *Spool) commitBatch(b *batch) {
	defer close(b.done)
	ops := b.ops
	for len(ops) > 0 {
		err := s.commit(ops)
		if err == nil {
			ops = s.wantRoom()
			continue
		}
		s.refuse(ops, s.refusal(ops, err))
		if len(s.committer.kept) > 0 {
			err = s.commitKept() // alone they may fit, or the disk was only unwell for a moment
		}
		if err != nil && (len(s.committer.kept) > 0 || !isNoSpace(err)) {
			s.fail(err)
		}
		return
	}
}

// refusal is what those are told who do not last.
func (s *Spool) refusal(ops []operation, err error) error {
	var ce *commitError
	switch {
	case errors.As(err, &ce) && ce.visible:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case isNoSpace(err):
		biggest := 0
		for _, op := range ops {
			biggest = max(biggest, op.size())
		}
		s.room.blocked(int64(biggest), err)
		s.noteSpace()
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ErrUnwritable, err)
}

// commitKept writes the kept results: all at once, else in smaller and smaller pieces, so that neither a scarce reserve
// nor one bad result holds up the rest.
func (s *Spool) commitKept() error {
	c := &s.committer
	size := len(c.kept)
	for len(c.kept) > 0 {
		n := min(size, len(c.kept), maxBatchOps)
		err := s.commit(c.kept[:n])
		switch {
		case err == nil:
			c.kept = append(c.kept[:0:0], c.kept[n:]...)
		case n == 1:
			c.kept = append(append(c.kept[:0:0], c.kept[1:]...), c.kept[0])
			return err
		default:
			size = n / 2
		}
	}
	return nil
}

func (s *Spool) fail(err error) {
	s.committer.backoff.fail(time.Now())
	s.setWritable(false, err)
}

// setWritable says once when the disk begins to refuse and once when it no longer does.
func (s *Spool) setWritable(ok bool, cause error) {
	s.mu.Lock()
	changed := s.writable != ok
	s.writable = ok
	s.mu.Unlock()
	switch {
	case !changed:
	case ok:
		s.cfg.Logger.Info("the spool can be written again")
	default:
		s.cfg.Logger.Error("the spool cannot be written: new events are refused and nothing is sent until it can; "+
			"check the disk under spool.dir", slog.Any("error", cause))
	}
}

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
	var ce *commitError
	visible := errors.As(err, &ce) && ce.visible
	if err != nil {
		for _, l := range t.fresh {
			s.leases.remove(l.Event.Seq)
		}
	}
	s.leases.remove(t.reserved...)
	if err == nil || visible {
		s.publish(t)
	}
	if visible {
		// What those who were refused sent is there all the same, and due: somebody has to look.
		for i := range t.hints {
			t.hints[i].Lease = nil
		}
		s.tellCommitted(t)
	}
	if err == nil {
		s.leases.remove(t.ended...)
		s.deferred = t.deferred
	}
	if merr := s.store.guard(s.store.measure); merr == nil {
		s.room.recheck()
		s.noteSpace()
	}
}
