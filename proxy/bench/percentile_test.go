package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func upTo(n int) []time.Duration {
	samples := make([]time.Duration, n)
	for i := range samples {
		samples[i] = time.Duration(i + 1)
	}
	return samples
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	for _, c := range []struct {
		n    int
		p    float64
		want time.Duration
	}{
		{1, 0.5, 1}, {1, 0.99, 1}, {2, 0.5, 1}, {3, 0.5, 2}, {4, 0.5, 2}, {100, 0.5, 50}, {100, 0.99, 99}, {100, 1, 100},
		{101, 0.99, 100}, {10, 0.99, 10}, {1000, 0.999, 999}, {5, 0.0001, 1},
	} {
		if got := percentile(upTo(c.n), c.p); got != c.want {
			t.Errorf("percentile of 1..%d at %v: got %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

// The definition itself, counted out: enough samples are at or below it, and below it there are too few.
func TestPercentileByItsDefinition(t *testing.T) {
	for range 500 {
		samples := make([]time.Duration, 1+rand.IntN(300))
		for i := range samples {
			samples[i] = time.Duration(rand.IntN(50))
		}
		slices.Sort(samples)
		p := (1 + rand.Float64()*99) / 100
		got := percentile(samples, p)
		var below, upTo int
		for _, s := range samples {
			if s < got {
				below++
			}
			if s <= got {
				upTo++
			}
		}
		need := p * float64(len(samples))
		if float64(upTo) < need || float64(below) >= need {
			t.Fatalf("p %v of %v: got %d, with %d below it and %d up to it", p, samples, got, below, upTo)
		}
	}
}

func TestSummarise(t *testing.T) {
	if got := summarise(nil); got != (latencies{}) {
		t.Errorf("of nothing: %+v", got)
	}
	samples := upTo(1000)
	rand.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	if got, want := summarise(samples), (latencies{500, 900, 990, 1000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOver(t *testing.T) {
	for _, c := range []struct {
		values           []float64
		median, min, max float64
	}{
		{[]float64{3}, 3, 3, 3}, {[]float64{3, 1}, 2, 1, 3}, {[]float64{9, 1, 2}, 2, 1, 9}, {[]float64{4, 1, 3, 2}, 2.5, 1, 4},
	} {
		before := slices.Clone(c.values)
		got := over(c.values)
		if got.Median != c.median || got.Min != c.min || got.Max != c.max {
			t.Errorf("over %v: %+v", c.values, got)
		}
		if !slices.Equal(got.Rounds, before) {
			t.Errorf("the rounds lost their order: %v, want %v", got.Rounds, before)
		}
	}
}

// A machine that was half as fast in one round must not show in the ratio.
func TestRatiosAreTakenRoundByRound(t *testing.T) {
	r := row{Value: over([]float64{60, 30, 60})}.beside("other", []float64{100, 50, 100}).atLeast(0.6)
	if r.Ratio.Min != 0.6 || r.Ratio.Max != 0.6 || !r.Aim.Met {
		t.Errorf("ratio %+v, aim %+v", *r.Ratio, *r.Aim)
	}
	if r.Value.Median != 60 || r.Reference.Median != 100 {
		t.Errorf("value %+v, reference %+v", r.Value, *r.Reference)
	}
}

func TestIntendedTimesDoNotDrift(t *testing.T) {
	begin := time.Now()
	for _, rate := range []float64{1, 3, 1000, 7777} {
		at := intended(begin, int64(rate)*3600, rate).Sub(begin)
		if off := math.Abs((at - time.Hour).Seconds()); off > 1e-6 {
			t.Errorf("at %v/s the last request of an hour is %v s off", rate, off)
		}
	}
}
