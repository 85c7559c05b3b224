package limiter

import (
	"slices"
	"time"

	"postern/limiter/breaker"
)

// Permit allows one attempt: at most one request on the wire.
type Permit struct {
	ticket   breaker.Ticket
	throttle uint64
	number   uint64
}

// Probe tells whether the attempt is the breaker's probe.
func (p Permit) Probe() bool { return p.ticket.Probe }

// flights are the permits that have not been reported, in ascending order of their numbers.
type flights struct {
	list []flight
	// out counts those whose request has not left: each may leave at any moment.
	out  int
	next uint64
}

type flight struct {
	number  uint64
	taken   time.Time
	limited bool // it used up a reservation
	left    bool
}

func (f *flights) len() int { return len(f.list) }

func (f *flights) begin(now time.Time, limited bool) uint64 {
	f.next++
	f.list = append(f.list, flight{number: f.next, taken: now, limited: limited})
	f.out++
	return f.next
}

func (f *flights) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(f.list, number, func(e flight, n uint64) int {
		switch {
		case e.number < n:
			return -1
		case e.number > n:
			return 1
		default:
			return 0
		}
	})
}

// leave marks the permit's request as written; ok is false if it was, or if the permit was reported.
func (f *flights) leave(number uint64) (e flight, ok bool) {
	i, found := f.find(number)
	if !found || f.list[i].left {
		return flight{}, false
	}
	f.list[i].left = true
	f.out--
	return f.list[i], true
}

// end takes the permit out of the list; ok is false for one that was reported before.
func (f *flights) end(number uint64) (e flight, ok bool) {
	i, found := f.find(number)
	if !found {
		return flight{}, false
	}
	e = f.list[i]
	f.list = slices.Delete(f.list, i, i+1)
	if !e.left {
		f.out--
	}
	return e, true
}
