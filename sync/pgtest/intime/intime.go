// Package intime lets tests hold the program against the times that it promises, on machines that are busy with others.
//
// It promises that a promise which is broken every time fails the test, and that a machine which is late now and then
// does not. It leaves out waiting: what is only to happen some time is waited for patiently, by each test's own means.
package intime

import (
	"testing"
	"time"
)

// tries is how often the machine may be late.
const tries = 5

// Hold fails the test unless one of five tries takes no longer than the limit; the first one that does is the last.
func Hold(t testing.TB, limit time.Duration, what string, try func() time.Duration) {
	t.Helper()
	took := make([]time.Duration, 0, tries)
	for range tries {
		took = append(took, try())
		if took[len(took)-1] <= limit {
			return
		}
	}
	t.Errorf("%s took %v, want %v at most", what, took, limit)
}

// Since is Hold where all of a try is to take no longer than the limit.
func Since(t testing.TB, limit time.Duration, what string, try func()) {
	t.Helper()
	Hold(t, limit, what, func() time.Duration {
		start := time.Now()
		try()
		return time.Since(start)
	})
}
