package main

import (
	"runtime"
	"syscall"
	"time"
)

// pace puts n times, evenly spaced from begin on, into due, each when it has come, and closes it. The channel holds all
// of them, so that nobody who is slow delays the next. It sleeps in the kernel, in a thread of its own: Go's timers
// wake up to a millisecond late in an idle process, which would be as much as what is measured.
func pace(due chan<- time.Time, n int64, begin time.Time, rate float64) {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	defer close(due)
	for i := range n {
		at := intended(begin, i, rate)
		if wait := time.Until(at); wait > 0 {
			ts := syscall.NsecToTimespec(int64(wait))
			syscall.Nanosleep(&ts, nil) // cut short by a signal: a few microseconds early, and counted as such
		}
		due <- at
	}
}

// intended is when request i is meant to leave. Computed from the beginning, so that errors do not add up.
func intended(begin time.Time, i int64, rate float64) time.Time {
	return begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
}
