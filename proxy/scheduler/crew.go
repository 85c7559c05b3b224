package scheduler

import (
	"sync"
	"time"
)

// crew lends goroutines to attempts. An attempt goes through net/http, which is deep: a new goroutine's stack would be
// made larger and copied, twice, in each of them. So as many stay as were busy at once a while ago: commits hand attempts
// on by the dozen, and between two such bursts all of them rest. It belongs to the scheduler's goroutine, but for all.
type crew struct {
	idle     []worker
	busy     int
	most     int // busy at once since the last review
	reviewed time.Time
	all      sync.WaitGroup
}

// worker is the way to one goroutine; it takes one job at a time.
type worker chan job

// job is what a worker does. It is handed the worker, so that it can be given back with rest.
type job interface{ work(worker) }

const (
	// reviewEvery is how long those who have nothing to do stay at least, and twice that at most.
	reviewEvery = 5 * time.Second
	// spareWorkers is how many stay when nothing is in flight.
	spareWorkers = 8
)

// run has a worker do a job.
func (c *crew) run(j job) {
	c.busy++
	c.most = max(c.most, c.busy)
	var w worker
	if n := len(c.idle); n > 0 {
		w, c.idle[n-1] = c.idle[n-1], nil
		c.idle = c.idle[:n-1]
	} else {
		w = make(worker, 1)
		c.all.Go(func() {
			for next := range w {
				next.work(w)
			}
		})
	}
	w <- j
}

// rest takes a worker back whose job is done.
func (c *crew) rest(w worker) {
	c.busy--
	c.idle = append(c.idle, w)
}

// review lets those go who were not needed since the last one, now and then.
func (c *crew) review(now time.Time) {
	if now.Sub(c.reviewed) < reviewEvery {
		return
	}
	c.dismiss(max(c.most-c.busy, spareWorkers))
	c.reviewed, c.most = now, c.busy
}

// dismiss ends idle workers beyond a number of them.
func (c *crew) dismiss(beyond int) {
	for n := len(c.idle) - 1; n >= beyond; n-- {
		close(c.idle[n])
		c.idle[n] = nil
		c.idle = c.idle[:n]
	}
}
