package quantile

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEveryDurationIsWithinOnePercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(math.Exp(rapid.Float64Range(0, math.Log(math.MaxInt64)).Draw(t, "log of the duration")))
		if got := duration(bucket{index: indexOf(d)}.value()); !near(got, d, false) {
			t.Fatalf("%d is counted as %d", d, got)
		}
	})
	for _, d := range []time.Duration{0, 1, 2, time.Millisecond, math.MaxInt64} {
		if got := duration(bucket{index: indexOf(d)}.value()); !near(got, d, false) {
			t.Errorf("%d is counted as %d", d, got)
		}
	}
}

func TestASketchIsBounded(t *testing.T) {
	var s sketch
	for d := 1.0; d < math.MaxInt64; d *= 1.001 {
		s.add(time.Duration(d))
	}
	if len(s) > 2300 || !slices.IsSortedFunc(s, func(a, b bucket) int { return int(a.index - b.index) }) {
		t.Errorf("%d buckets", len(s))
	}
}

// TestMixedRanks compares the walk over exact and bucketed values with one sorted list of both.
func TestMixedRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Map(rapid.Int64Range(0, 2000), func(n int64) time.Duration { return time.Duration(n) })
		exact := rapid.SliceOfN(some, 1, 30).Draw(t, "exact")
		var list []float64
		for _, d := range exact {
			list = append(list, float64(d))
		}
		var s sketch
		for _, d := range rapid.SliceOfN(some, 1, 30).Draw(t, "bucketed") {
			s.add(d)
			list = append(list, bucket{index: indexOf(d)}.value())
		}
		slices.Sort(list)
		v := newValues(exact, s)
		for rank, want := range list {
			if got := v.at(rank); got != want {
				t.Fatalf("rank %d is %v, want %v", rank, got, want)
			}
		}
	})
}
