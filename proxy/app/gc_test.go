package app

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: gcMost, 1 << 20: gcMost, 3 << 20: gcMost, 6 << 20: 400, 12 << 20: 200, 24 << 20: 100, 25 << 20: 100, 10 << 30: 100,
	} {
		if got := gcPercent(live); got != want {
			t.Errorf("with %d bytes live: %d, want %d", live, got, want)
		}
	}
}

// nowPercent reads the percentage in force.
func nowPercent() int {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return int(percent[0].Value.Uint64())
}

// collectUntil collects until the percentage is as wanted: cleanups run some time after a collection.
func collectUntil(t *testing.T, ok func(percent int) bool) {
	t.Helper()
	for range 1000 {
		if runtime.GC(); ok(nowPercent()) {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("the percentage stays at %d", nowPercent())
}

func TestHeadroomFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := nowPercent()
	end := keepHeadroom()
	defer end()
	if got := nowPercent(); got != gcMost {
		t.Errorf("at the beginning: %d", got)
	}
	ballast := make([]byte, 4*gcHeadroom)
	collectUntil(t, func(p int) bool { return p == gcDefault })
	runtime.KeepAlive(ballast)
	collectUntil(t, func(p int) bool { return p > gcDefault })
	end()
	if got := nowPercent(); got != before {
		t.Errorf("at the end: %d, was %d", got, before)
	}
}

func TestHeadroomIsNoneOfOursWhereGOGCIsSet(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := nowPercent()
	end := keepHeadroom()
	if got := nowPercent(); got != before {
		t.Errorf("changed from %d to %d", before, got)
	}
	end()
}

// TestOnlyALargeConfigurationIsCollected: a small one is not worth the time.
func TestOnlyALargeConfigurationIsCollected(t *testing.T) {
	collections := func(endpoints int) uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		giveBackRest(endpoints)
		runtime.ReadMemStats(&after)
		return after.NumForcedGC - before.NumForcedGC
	}
	if n := collections(manyEndpoints - 1); n != 0 {
		t.Errorf("%d collections for few endpoints", n)
	}
	if n := collections(manyEndpoints); n != 1 {
		t.Errorf("%d collections for many endpoints", n)
	}
}
