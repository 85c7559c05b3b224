package spool

import "time"

// housekeep runs once a second in the committer.
func (s *Spool) housekeep() {
	if s.failing() {
		return
	}
	err := s.commit([]operation{sweepOp{s}})
	switch {
	case err == nil:
		s.sweep.bigger()
	case lacksRoom(err):
		s.sweep.smaller() // a full disk is not a broken one: deliveries go on
	default:
		s.fail(err)
		return
	}
	s.noteNext()
	s.tellFull(time.Now())
	s.considerCompaction(time.Now())
}
