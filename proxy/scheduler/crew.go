package scheduler

import "sync"

// crew lends goroutines to attempts. An attempt goes through net/http, which is deep: a new goroutine's stack would be
// made larger and copied, twice, in each of them. It belongs to the scheduler's goroutine, but for wait.
type crew struct {
	idle []worker
	all  sync.WaitGroup
}

// worker is the way to one goroutine; it takes one job at a time.
type worker chan job

// job is what a worker does. It is handed the worker, so that it can be given back with rest.
type job interface{ work(worker) }

// spareWorkers is how many stay when nothing is in flight.
const spareWorkers = 8

// run has a worker do a job.
func (c *crew) run(j job) {
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

// rest takes a worker back whose job is done. busy is how many others have one: as many may rest, and a few.
func (c *crew) rest(w worker, busy int) {
	c.idle = append(c.idle, w)
	c.dismiss(busy + spareWorkers)
}

// dismiss ends idle workers beyond a number of them.
func (c *crew) dismiss(beyond int) {
	for n := len(c.idle) - 1; n >= beyond; n-- {
		close(c.idle[n])
		c.idle[n] = nil
		c.idle = c.idle[:n]
	}
}
