package spool

import "time"

// Due times are wall-clock times, and a wall clock can be set back between two runs: what the last run planned for the
// next minute would wait for as long as the clock was set back. So each commit notes the latest time that was seen, in the
// counters, which it writes anyway. redate makes use of it.

// LastSeen is the latest wall-clock time that any run of this spool has seen, as of its last commit: of the spool's own
// clock, and of those that were given to Lease. Zero: there was no commit yet.
func (s *Spool) LastSeen() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters.lastSeen
}

// sawTime notes the time by which somebody asked for what is due; it is stored with the next commit.
func (s *Spool) sawTime(now time.Time) {
	now = now.Round(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.latest) {
		s.latest = now
	}
}

// noteTime puts the latest time into the counters that are about to be written.
func (t *txn) noteTime() {
	t.s.mu.Lock()
	latest := t.s.latest
	t.s.mu.Unlock()
	for _, at := range []time.Time{t.now, latest} {
		if at = at.Round(0).Truncate(time.Microsecond); at.After(t.counters.lastSeen) {
			t.counters.lastSeen = at
		}
	}
}
