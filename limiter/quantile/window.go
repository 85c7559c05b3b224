// Package quantile keeps the durations of the last 24 hours of one endpoint and tells their median, 95th and 99th
// percentile.
//
// It promises: exact quantiles, by PostgreSQL's percentile_cont, up to MaxExact samples in the window and as far as
// the shared Pool allows; beyond that, the oldest samples are counted in logarithmic buckets per half hour, which keeps
// every quantile within 1 % of the exact one, and memory bounded. Adding costs well under a microsecond.
//
// It leaves out: persistence, and clocks (times are handed in, and should carry Go's monotonic reading). The part that
// is in buckets slides by half hours: a bucketed half hour counts until its end is 24 hours old.
package quantile

import (
	"slices"
	"sync"
	"time"
)

const (
	// Span is the length of the window.
	Span = 24 * time.Hour
	// slotSpan is the step in which bucketed samples leave the window, and the grain of Slots.
	slotSpan = 30 * time.Minute
)

type sample struct {
	at, took time.Duration // at counts from the window's base
}

type slot struct {
	index  int64 // in slotSpans from the window's base
	sketch sketch
}

// Window is one endpoint's sliding window. The zero value is empty, ready for use and bound to no pool. Safe for
// concurrent use.
type Window struct {
	pool *Pool

	mu sync.Mutex // guards all below
	// base is the start of the wall clock's half hour of the first sample.
	base time.Time
	// exact holds the newest samples in order of time, from head on; what is before head has left.
	exact []sample
	head  int
	// slots holds what no longer fits, in order of time.
	slots []slot
}

// Add adds an attempt that ended at that time and took d; a negative d counts as zero. A sample may come late, and one
// that is older than the window will not be seen.
func (w *Window) Add(at time.Time, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.base.IsZero() {
		w.base = at.Add(-at.Sub(at.Truncate(slotSpan)))
	}
	s := sample{at: at.Sub(w.base), took: max(d, 0)}
	w.expireLocked(s.at)
	if len(w.exact)-w.head >= MaxExact || !w.pool.take() {
		if w.head == len(w.exact) {
			w.countLocked(s)
			return
		}
		w.countLocked(w.exact[w.head])
		w.head++
	}
	w.insertLocked(s)
}

// insertLocked puts an exact sample at its place; nearly always that is the end.
func (w *Window) insertLocked(s sample) {
	w.compactLocked()
	i := len(w.exact)
	if i > w.head && w.exact[i-1].at > s.at {
		i, _ = slices.BinarySearchFunc(w.exact[w.head:], s.at+1, func(e sample, at time.Duration) int {
			return int(max(min(e.at-at, 1), -1))
		})
		i += w.head
	}
	w.exact = slices.Insert(w.exact, i, s)
}

// compactLocked gives back the room of samples that have left, once it is half of all.
func (w *Window) compactLocked() {
	if w.head < 16 || 2*w.head < len(w.exact) {
		return
	}
	live := w.exact[w.head:]
	if 4*len(live) < cap(w.exact) {
		w.exact = slices.Clone(live)
	} else {
		w.exact = w.exact[:copy(w.exact, live)]
	}
	w.head = 0
}

// countLocked counts a sample in the buckets of its slot.
func (w *Window) countLocked(s sample) {
	index := slotOf(s.at)
	i, found := slices.BinarySearchFunc(w.slots, index, func(e slot, index int64) int {
		return int(max(min(e.index-index, 1), -1))
	})
	if !found {
		w.slots = slices.Insert(w.slots, i, slot{index: index})
	}
	w.slots[i].sketch.add(s.took)
}

// slotOf returns the slot of a time, also of one before the base.
func slotOf(at time.Duration) int64 {
	index := int64(at / slotSpan)
	if at%slotSpan < 0 {
		index-- // division rounds towards zero
	}
	return index
}

// expireLocked drops what has left the window that ends now.
func (w *Window) expireLocked(now time.Duration) {
	start, before := now-Span, w.head
	for w.head < len(w.exact) && w.exact[w.head].at <= start {
		w.head++
	}
	w.pool.give(w.head - before)
	gone := 0
	for gone < len(w.slots) && time.Duration(w.slots[gone].index+1)*slotSpan <= start {
		gone++
	}
	w.slots = slices.Delete(w.slots, 0, gone)
}

// Quantiles returns the quantiles of the window that ends now, and drops what has left it.
func (w *Window) Quantiles(now time.Time) Summary {
	w.mu.Lock()
	w.expireLocked(now.Sub(w.base))
	w.compactLocked()
	exact := make([]time.Duration, 0, len(w.exact)-w.head)
	for _, s := range w.exact[w.head:] {
		exact = append(exact, s.took)
	}
	var buckets sketch
	for _, s := range w.slots {
		for _, b := range s.sketch {
			buckets.merge(b)
		}
	}
	w.mu.Unlock()
	// Sorting is the expensive part: Add does not wait for it.
	return newValues(exact, buckets).summary()
}
