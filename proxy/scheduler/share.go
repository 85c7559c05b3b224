package scheduler

import "time"

// No endpoint takes the others' slots: not one that is slow (its own concurrency bounds it), and not many that are slow
// together, such as thousands of addresses behind a resolver that hangs. So slots are shared by what is known of whoever
// wants one. An endpoint whose last attempt held its slot for long, or an ad hoc one of which nothing is known yet, finds
// one in four closed; a named one of which nothing is known one in eight; those are left to endpoints that were quick. And
// such endpoints find one more in eight closed to whoever has a slot already: a dozen that hang leave a first slot to the
// next one that nobody knows yet, which may be quick.

// standing is what is known of how long an endpoint holds a slot.
type standing uint8

const (
	doubtful  standing = iota // its last attempt was slow; or it is ad hoc and has had none since the start
	unknown                   // a named one that has had none since the start
	quick                     // its last attempt was over soon, whatever came of it
	standings = 3
)

// slowAttempt is how long an attempt must have held its slot for its endpoint to be doubtful: what the breaker calls slow
// by default, and what resolvers take to give up.
const slowAttempt = 5 * time.Second

// share counts the slots that are held, by the standing that the endpoint had when it took one.
type share struct {
	held    [standings]int
	crowded [standings][further + 1]queue[*line] // who waits for one, in order
}

// rank tells an endpoint's first slot from those that it takes beside.
type rank uint8

const (
	first rank = iota
	further
)

// closedTo is how many of all slots a standing never takes: the first few of them are nobody's but the quick ones'.
func closedTo(st standing, r rank, all int) int {
	closed := 0
	switch st {
	case quick:
		return 0
	case doubtful:
		closed = all / 4
	case unknown:
		closed = all / 8
	}
	if r == further {
		closed += all / 8
	}
	return closed
}

// room is how many more slots a standing may take as far as the others' share goes. What the quick ones hold is not held
// against anybody: they give it back soon.
func (sh *share) room(st standing, r rank, all int) int {
	if st == quick {
		return all
	}
	return all - closedTo(st, r, all) - sh.held[doubtful] - sh.held[unknown]
}

// wait puts a line at the end of those of its standing and rank.
func (sh *share) wait(l *line) {
	if !l.crowded {
		l.crowded = true
		sh.crowded[l.standing()][l.rank()].push(l)
	}
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
		return doubtful
	case l.tried:
		return quick
	case l.policy.Named:
		return unknown
	}
	return doubtful
}

// uncrowd makes ready as many of those who wait as there may be slots for, the longest waiting first; never all of them,
// since there may be thousands, and a slot is given back thousands of times a second.
func (s *Scheduler) uncrowd() {
	for st := range standing(standings) {
		for r := range further + 1 {
			waiting := &s.share.crowded[st][r]
			n := min(s.share.room(st, r, s.cfg.Concurrency), s.free(), waiting.len())
			for range max(n, 0) {
				l := waiting.pop()
				l.crowded = false
				s.enqueue(l)
			}
		}
	}
}
