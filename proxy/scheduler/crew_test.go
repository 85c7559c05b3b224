package scheduler

import (
	"testing"
	"testing/synctest"
)

type task func(worker)

func (t task) work(w worker) { t(w) }

// TestCrewReusesAndShrinks: jobs one after the other have one worker, a burst's workers go when the burst is over, and
// none is left in the end: a goroutine that stays would end the bubble with a panic.
func TestCrewReusesAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crew
		done := make(chan worker)
		hold := make(chan struct{})
		for range 5 {
			c.run(task(func(w worker) { done <- w }))
			c.rest(<-done, 0)
		}
		if len(c.idle) != 1 {
			t.Errorf("%d workers for jobs one after the other", len(c.idle))
		}
		for range 100 {
			c.run(task(func(w worker) { <-hold; done <- w }))
		}
		if len(c.idle) != 0 {
			t.Errorf("%d workers rest while 100 jobs wait", len(c.idle))
		}
		close(hold)
		for busy := 99; busy >= 0; busy-- {
			c.rest(<-done, busy)
		}
		if len(c.idle) != spareWorkers {
			t.Errorf("%d workers rest after a burst of 100", len(c.idle))
		}
		c.dismiss(0)
		c.all.Wait()
	})
}
