package spool

import "time"

// housekeep runs once a second in the committer.
func (s *Spool) housekeep() {
	if s.failing() {
		return
	}
	if err := s.commit([]operation{sweepOp{s}}); err != nil {
		s.fail(err)
		return
	}
	s.considerCompaction(time.Now())
}
