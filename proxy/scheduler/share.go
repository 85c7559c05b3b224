package scheduler

import "time"

// No endpoint takes the others' slots: not one that is slow (its own concurrency bounds it), and not many that are slow
// together, such as thousands of addresses behind a resolver that hangs. So slots are shared by what is known of whoever
// wants one:
//
//   - a quarter of all is nobody's but those endpoints' that were quick; a named one that was not tried yet may take half
//     of that;
//   - of the rest a quarter of all is for first slots: what an endpoint takes beside its first one leaves them alone, so that
//     dozens that hang with long backlogs leave a slot to the next one that nobody knows yet, and which may be quick;
//   - half of that is for the first slots of endpoints that were not tried yet: those known to be slow leave it to them,
//     however many they are.
//
// What is not reserved goes to whoever comes first.

// standing is what is known of how long an endpoint holds a slot.
type standing uint8

const (
	slow      standing = iota // its last attempt held its slot for long
	stranger                  // an ad hoc one that has had no attempt since the start
	untried                   // a named one that has had none since the start
	quick                     // its last attempt was over soon, whatever came of it
	standings = 4
)

// slowAttempt is how long an attempt must have held its slot for its endpoint to be slow: what the breaker calls slow by
// default, and what resolvers take to give up.
const slowAttempt = 5 * time.Second

// share counts the slots that are held, by the standing that the endpoint had when it took one.
type share struct {
	held    [standings][further + 1]int
	crowded [standings][further + 1]queue[*line] // who waits for one, in order
	called  [standings]int                       // of those, whose turn is next
}

// rank tells an endpoint's first slot from those that it takes beside.
type rank uint8

const (
	first rank = iota
	further
)

// room is how many more slots a standing may take as far as the others' share goes. What the quick ones hold is not held
// against anybody: they give it back soon.
func (sh *share) room(st standing, r rank, all int) int {
	if st == quick {
		return all
	}
	fresh := sh.held[stranger][first] + sh.held[untried][first]
	firsts := fresh + sh.held[slow][first]
	beside := sh.held[slow][further] + sh.held[stranger][further] + sh.held[untried][further]
	closed := all / 4
	if st == untried {
		closed = all / 8
	}
	kept := 0
	if r == further {
		kept = max(kept, all/4-firsts)
	}
	if r == further || st == slow {
		kept = max(kept, all/8-fresh)
	}
	return all - closed - kept - firsts - beside
}

// place is one of the queues for slots.
type place struct {
	standing standing
	rank     rank
}

// wait puts a line at the end of those of its standing and rank. Where it waited as something else before, the entry there
// stays and counts for nothing.
func (sh *share) wait(l *line) {
	now := place{l.standing(), l.rank()}
	l.crowded, l.place = true, now
	if in := &l.listed[now.standing][now.rank]; !*in {
		*in = true
		sh.crowded[now.standing][now.rank].push(l)
	}
}

// next takes the line that waits longest in a place.
func (sh *share) next(at place) (*line, bool) {
	q := &sh.crowded[at.standing][at.rank]
	for q.len() > 0 {
		l := q.pop()
		l.listed[at.standing][at.rank] = false
		if l.crowded && l.place == at {
			l.crowded = false
			return l, true
		}
	}
	return nil, false
}

// rank is that of the slot which the line would take now.
func (l *line) rank() rank {
	if l.inFlight == 0 {
		return first
	}
	return further
}

// standing is that of the line now.
func (l *line) standing() standing {
	switch {
	case l.slow:
		return slow
	case l.tried:
		return quick
	case l.policy.Named:
		return untried
	}
	return stranger
}

// comes notes that a line has its turn: it waits for none any more.
func (sh *share) comes(l *line) {
	l.crowded = false
	if l.called {
		l.called = false
		sh.called[l.place.standing]--
	}
}

// uncrowd makes ready as many of those who wait as there may be slots for, the longest waiting first and first slots before
// further ones; never more, since whoever comes in vain goes to the end again, and there may be thousands, while a slot is
// given back thousands of times a second. It tells whether there was one.
func (s *Scheduler) uncrowd() (any bool) {
	for st := range standing(standings) {
		for r := range further + 1 {
			n := min(s.share.room(st, r, s.cfg.Concurrency), s.free()) - s.share.called[st]
			for range max(n, 0) {
				l, ok := s.share.next(place{st, r})
				if !ok {
					break
				}
				if !l.called {
					l.called = true
					s.share.called[st]++
				}
				s.enqueue(l)
				any = true
			}
		}
	}
	return any
}
