package scheduler

import (
	"testing"
	"time"

	"postern/limiter"
)

// Slots grow from one with the time that an attempt waits; a turn that began long before the attempt finds one.
func TestSlots(t *testing.T) {
	now := time.Now()
	for waited, want := range map[time.Duration]int{
		-time.Hour: 1, -growEvery: 1, -1: 1, 0: 1, growEvery - 1: 1, growEvery: 2, 3 * growEvery: 8, 100 * growEvery: 32, 1 << 62: 32,
	} {
		l := &line{policy: Policy{Limiter: limiter.Policy{Concurrency: 32}}, busySince: now.Add(-waited)}
		if got := l.slots(now); got != want {
			t.Errorf("after %v: %d slots, want %d", waited, got, want)
		}
	}
}
