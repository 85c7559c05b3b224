package bucket

import (
	"slices"
	"time"
)

// Run is a number of sends that are recorded under one time, the latest of theirs.
type Run struct {
	At time.Time
	N  int
}

// exactRuns is the number of sends up to which each is stored under its own time: about a kilobyte.
const exactRuns = 256

// coarse is the share of its age by which a send may be stored as later where there are more: a window then opens at
// most a thirty-second of its length too late, once, after a restart, and a million sends fit into 700 runs.
const coarse = 32

// Record returns the sends that still matter, oldest first. With many of them several become one run; a send may
// then be recorded as later than it was, never as earlier.
func (b *Bucket) Record(now time.Time) []Run {
	end := b.offset(now)
	first := b.sent.older(end - int64(b.longest()))
	kept := b.sent.n - first
	runs := make([]Run, 0, min(kept, 2*exactRuns))
	for i := b.sent.n - 1; i >= first; {
		t := b.sent.at(i)
		next := i - 1
		if kept > exactRuns {
			next = max(b.sent.older(t-max(end-t, 0)/coarse-1), first) - 1
			next = min(next, i-1)
		}
		runs = append(runs, Run{At: b.time(t), N: i - next})
		i = next
	}
	slices.Reverse(runs)
	return runs
}

// Restore puts a record back, oldest first, into a bucket that has sent nothing yet. Times are turned into distances
// from now, which carries the monotonic clock: a wall clock that jumps later does not move them.
func (b *Bucket) Restore(runs []Run, now time.Time) {
	for _, r := range runs {
		at := now.Add(r.At.Sub(now))
		for range min(r.N, b.most) {
			b.sent.add(b.offset(at), b.most)
		}
	}
	b.replay()
}

// replay spends the spacing's tokens for the recorded sends.
func (b *Bucket) replay() {
	if !b.Limited() {
		return
	}
	n := min(b.sent.n, shortest(b.limits).N)
	for i := b.sent.n - n; i < b.sent.n; i++ {
		b.spacer.take(b.time(b.sent.at(i)))
	}
}
