package spool

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"
)

// tickEvery is how often the committer looks after what nobody asks for: retention, room, compaction.
const tickEvery = time.Second

// committer is the state of the one goroutine that writes. Nobody else touches it.
type committer struct {
	kept    []operation // results that the disk refused
	backoff backoff
	started bool // the directory no longer counts as cleanly closed
	noted   uint64
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
		s.step()
		if s.failing() {
			retry.Reset(time.Until(s.committer.backoff.until))
		}
	}
}

// step commits one batch and tells whether there was one. It is one only, since under load there is always another: run
// looks around between them, for the queue wakes it again while more waits.
func (s *Spool) step() bool {
	if s.failing() && !s.recover() {
		s.refuseQueued()
		return false
	}
	// Those whom the last commit woke come first: they answer their clients, and what these send next joins this batch.
	// Where nobody can run, this is no wait.
	runtime.Gosched()
	b := s.queue.take()
	if b == nil {
		return false
	}
	s.commitBatch(b)
	return true
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
	for ops := b.ops; len(ops) > 0; ops = s.wantRoom() {
		s.commitOrRefuse(ops)
	}
}

// commitOrRefuse commits operations. Where they find no room the acceptances are refused and the others are tried without
// them. What fails in the end is refused or kept.
func (s *Spool) commitOrRefuse(ops []operation) {
	if s.failing() {
		s.refuse(ops, ErrUnwritable)
		return
	}
	err := s.commit(ops)
	if err != nil && lacksRoom(err) && s.takeRoomBack() {
		err = s.commit(ops)
	}
	switch {
	case err == nil:
	case lacksRoom(err):
		s.commitCramped(ops, err)
	default:
		s.abandonOps(ops, err)
	}
}

// abandonOps refuses what does not last and keeps the rest; the disk counts as failing where that is not written at once.
func (s *Spool) abandonOps(ops []operation, err error) {
	s.refuse(ops, s.refusal(ops, err))
	if len(s.committer.kept) > 0 {
		err = s.commitKept() // alone they may fit, or the disk was only unwell for a moment
	}
	if err != nil && (len(s.committer.kept) > 0 || !lacksRoom(err)) {
		s.fail(err)
	}
}

// refusal is what those are told who do not last.
func (s *Spool) refusal(ops []operation, err error) error {
	switch {
	case isVisible(err):
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
