package scheduler

import (
	"time"

	"postern/limiter"
)

// free is how many more attempts may start, all endpoints together.
func (s *Scheduler) free() int { return s.cfg.Concurrency - s.inFlight }

// pump starts what may be started now, line by line in turn. It returns how long to wait before looking again where
// the disk is what stands in the way.
func (s *Scheduler) pump(now time.Time) (pause time.Duration) {
	if s.stopping {
		return 0
	}
	if !s.cfg.Store.Writable() {
		return unwritablePause
	}
	s.serveAll(now)
	for s.inFlight == 0 && s.uncrowd() { // those that were called had nothing to send after all, and nobody will give a slot back
		s.serveAll(now)
	}
	s.sweep(now)
	return 0
}

// serveAll gives each line that is ready its turn, as long as there are slots.
func (s *Scheduler) serveAll(now time.Time) {
	for s.ready.len() > 0 && s.free() > 0 && s.unrecorded < s.cfg.Unrecorded {
		l := s.ready.pop()
		l.queued = false
		s.share.comes(l)
		if s.serve(l, now) {
			s.enqueue(l)
		}
	}
}

// serve gives one line its turn. It tells whether the line would have gone on; otherwise it has set the line's alarm,
// or an outcome will bring it back.
func (s *Scheduler) serve(l *line, now time.Time) (more bool) {
	for range quantum {
		if !l.configured || !l.waiting(now) {
			s.rest(l, now)
			return false
		}
		if now.Before(l.heldUntil) {
			s.setWake(l, l.heldUntil)
			return false
		}
		decision := l.gate.Ask(now, l.inFlight)
		if !decision.Allow {
			s.hold(l, decision, now)
			return false
		}
		if !l.roomFor(now) {
			s.crowd(l, now)
			return false
		}
		q := l.choose(now)
		if q == nil {
			s.rest(l, now)
			if l.fresh.len()+l.backlog.len() == 0 && l.diskReady(now) {
				// What was due could not be read and was set aside; there may be more behind it.
				s.setWake(l, now.Add(rereadPause))
			}
			return false
		}
		lease := l.pop(q)
		if s.expired(l, lease, now) {
			continue
		}
		permit, ok := l.gate.Take(now, l.inFlight)
		if !ok {
			s.cfg.Store.Release(lease)
			l.dueOnDisk(dueTime(lease))
			return true
		}
		s.start(&flight{s: s, line: l, lease: lease, permit: permit, fresh: q == &l.fresh})
	}
	return true
}

const (
	// growEvery is how long an endpoint that has not answered yet must have kept an attempt waiting before its slots
	// double, from one. An endpoint that says "too many" at once is thus not sent a volley first, and a slow one has all
	// its slots within half a second.
	growEvery = 100 * time.Millisecond
	// firstSlots is the part of all slots (one in so many) that only endpoints with nothing in flight may take: a
	// healthy endpoint finds one even where many others hang.
	firstSlots = 8
)

// roomFor tells whether the line may take one more slot.
func (l *line) roomFor(now time.Time) bool {
	st, share := l.standing(), &l.s.share
	// Those of its kind that were called have a claim to what is left; only a quick one need not wait for them.
	if room := share.room(st, l.rank(), l.s.cfg.Concurrency); room <= 0 || st != quick && room <= share.called[st] {
		return false
	}
	if l.inFlight == 0 {
		return true
	}
	return l.inFlight < l.slots(now) && l.s.free() > l.s.cfg.Concurrency/firstSlots
}

// slots is how many attempts of the line may be in flight. A turn can take long, on a busy machine or where the process is
// stopped for a while: then now, which is of its beginning, lies before the time at which an attempt of the same turn began.
func (l *line) slots(now time.Time) int {
	most := l.policy.Limiter.Concurrency
	if l.answered {
		return most
	}
	return min(most, 1<<min(max(now.Sub(l.busySince), 0)/growEvery, 16))
}

// crowd remembers a line that could go on if others held fewer slots, or later if it is yet to be answered.
func (s *Scheduler) crowd(l *line, now time.Time) {
	switch {
	case l.inFlight < l.slots(now):
		s.share.wait(l)
	case !l.answered && l.inFlight < l.policy.Limiter.Concurrency:
		s.setWake(l, now.Add(growEvery))
	}
}

// rest sets the alarm for the line's next event on disk. Nothing is due now.
func (s *Scheduler) rest(l *line, now time.Time) {
	if l.configured && !l.diskDue.IsZero() && l.diskDue.After(now) {
		s.setWake(l, l.diskDue)
	}
	if !l.configured {
		l.letGo()
	}
}

// hold does what the gate's refusal asks for.
func (s *Scheduler) hold(l *line, d limiter.Decision, now time.Time) {
	switch {
	case d.Reserve > 0:
		s.reserve(l, d.Reserve, now)
	case !d.At.IsZero():
		s.setWake(l, d.At)
	}
	if d.Reason != limiter.ReasonConcurrency && d.Reserve == 0 && (d.At.IsZero() || d.At.Sub(now) > time.Second) {
		l.letGo()
	}
}

// reserve writes down that the next sends are about to leave, before they do.
func (s *Scheduler) reserve(l *line, n int, now time.Time) {
	if l.reserving {
		return
	}
	l.reserving = true
	s.cfg.Store.SaveEndpointState(l.name, l.gate.Reserve(n, now), func(err error) {
		s.box.post(func() {
			l.reserving = false
			if err == nil {
				l.gate.Reserved(n, s.clock.now())
				s.enqueue(l)
				return
			}
			s.setWake(l, s.clock.now().Add(unwritablePause))
		})
	})
}

// start sends a flight on its way.
func (s *Scheduler) start(f *flight) {
	f.tried, f.standing, f.rank = f.lease.Progress.Attempts > 0, f.line.standing(), f.line.rank()
	f.limited = len(f.line.policy.Limiter.Limits) > 0
	s.share.held[f.standing][f.rank]++
	s.count(f, 1)
	s.crew.run(f)
}

// count keeps the numbers of what is in flight.
func (s *Scheduler) count(f *flight, by int) {
	l := f.line
	if l.inFlight == 0 {
		l.busySince = s.clock.now()
	}
	s.inFlight += by
	l.inFlight += by
	if f.fresh {
		l.freshInFlight += by
	}
	if f.tried {
		l.retrying += by
		s.inFlightFailed.Add(int64(by))
	} else {
		s.inFlightPending.Add(int64(by))
	}
	s.running.set(f.lease.Event.Seq, by > 0)
}
