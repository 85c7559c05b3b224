package scheduler

import (
	"testing"
	"testing/synctest"
	"time"
)

type task func(worker)

func (t task) work(w worker) { t(w) }

// TestCrewReusesAndShrinks: jobs one after the other have one worker, a burst's workers stay for the next burst and go
// when there was none for a while, and none is left in the end: a goroutine that stays would end the bubble with a panic.
func TestCrewReusesAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crew
		done, now := make(chan worker), time.Now()
		seen := map[worker]bool{}
		burst := func(size int) {
			hold := make(chan struct{})
			for range size {
				c.run(task(func(w worker) { <-hold; done <- w }))
			}
			close(hold)
			for range size {
				w := <-done
				seen[w] = true
				c.rest(w)
			}
		}
		rests := func(want int, when string) {
			t.Helper()
			if len(c.idle) != want || c.busy != 0 {
				t.Errorf("%s %d workers rest and %d are busy, want %d and none", when, len(c.idle), c.busy, want)
			}
		}
		for range 5 {
			burst(1)
		}
		rests(1, "after jobs one after the other")
		for range 5 {
			burst(100)
			c.review(now)
		}
		if len(seen) != 100 {
			t.Errorf("%d workers for bursts of 100", len(seen))
		}
		now = now.Add(reviewEvery)
		c.review(now)
		rests(100, "right after the bursts")
		now = now.Add(reviewEvery)
		c.review(now)
		rests(spareWorkers, "a while after the bursts")
		c.dismiss(0)
		c.all.Wait()
	})
}
