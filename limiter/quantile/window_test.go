package quantile

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 12, 10, 0, 0, time.UTC)

// reference is percentile_cont as PostgreSQL's documentation defines it, over all values at once.
func reference(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(all))
	rank := q * float64(len(v)-1)
	low, high := v[int(math.Floor(rank))], v[int(math.Ceil(rank))]
	return low + time.Duration(math.Round((rank-math.Floor(rank))*float64(high-low)))
}

// near tells whether got is within the promised error.
func near(got, want time.Duration, exact bool) bool {
	if exact {
		return got == want
	}
	return math.Abs(float64(got-want)) <= 0.01*float64(want)+1
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func compare(t fataler, got Summary, all []time.Duration) {
	t.Helper()
	if got.Count != len(all) {
		t.Fatalf("%d samples, want %d", got.Count, len(all))
	}
	for q, v := range map[float64]time.Duration{0.50: got.P50, 0.95: got.P95, 0.99: got.P99} {
		if want := reference(all, q); !near(v, want, got.Exact) {
			t.Fatalf("p%v is %v, want %v (of %d, exact: %v)", q, v, want, len(all), got.Exact)
		}
	}
}

func TestPercentileCont(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		samples []time.Duration
		want    Summary
	}{
		"none":      {nil, Summary{Exact: true}},
		"one":       {[]time.Duration{7 * ms}, Summary{7 * ms, 7 * ms, 7 * ms, 1, true}},
		"two":       {[]time.Duration{20 * ms, 10 * ms}, Summary{15 * ms, 19500 * time.Microsecond, 19900 * time.Microsecond, 2, true}},
		"ten":       {[]time.Duration{10 * ms, 9 * ms, 8 * ms, 7 * ms, 6 * ms, 5 * ms, 4 * ms, 3 * ms, 2 * ms, 1 * ms}, Summary{5500 * time.Microsecond, 9550 * time.Microsecond, 9910 * time.Microsecond, 10, true}},
		"negatives": {[]time.Duration{-5, -5}, Summary{0, 0, 0, 2, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var w Window
			for _, d := range c.samples {
				w.Add(start, d)
			}
			if got := w.Quantiles(start); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// Of two roundings, one too many would show between nanoseconds.
func TestBetweenNanoseconds(t *testing.T) {
	for a := range time.Duration(400) {
		for _, b := range []time.Duration{0, 1, 2, 380} {
			w := NewPool(0).NewWindow()
			w.Add(start, a)
			w.Add(start, b)
			compare(t, w.Quantiles(start), []time.Duration{a, b})
		}
	}
}

// record is what the model knows of a sample.
type record struct {
	at   time.Time
	took time.Duration
}

// TestAnyDay compares windows that share a budget with plain lists. Where the budget is ample all is exact and slides
// sample by sample; else the samples that may just have left are in doubt, by half an hour.
func TestAnyDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const windows = 2
		budget := rapid.SampledFrom([]int{0, 1, 10, 100, 1_000_000}).Draw(t, "budget")
		pool := NewPool(budget)
		var w [windows]*Window
		var model [windows][]record
		for i := range w {
			w[i] = pool.NewWindow()
		}
		now := start
		for range rapid.IntRange(15, 40).Draw(t, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour, 2*time.Hour + 1}).Draw(t, "pause"))
			i := rapid.IntRange(0, windows-1).Draw(t, "window")
			for range rapid.IntRange(1, 20).Draw(t, "samples") {
				late := rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 3 * time.Hour}).Draw(t, "late")
				took := time.Duration(math.Exp(rapid.Float64Range(0, 26).Draw(t, "took")))
				w[i].Add(now.Add(-late), took)
				model[i] = append(model[i], record{now.Add(-late), took})
			}
			for i := range w {
				check(t, w[i], model[i], now)
			}
			if used := len(w[0].exact) - w[0].head + len(w[1].exact) - w[1].head; int(pool.free.Load()) != budget-used {
				t.Fatalf("%d of the budget of %d free, with %d in use", pool.free.Load(), budget, used)
			}
		}
	})
}

func check(t *rapid.T, w *Window, all []record, now time.Time) {
	var in []time.Duration
	doubtful := 0
	for _, r := range all {
		switch age := now.Sub(r.at); {
		case age < Span:
			in = append(in, r.took)
		case age < Span+slotSpan:
			doubtful++
		}
	}
	got := w.Quantiles(now)
	if got.Exact || doubtful == 0 {
		compare(t, got, in)
		return
	}
	if got.Count < len(in) || got.Count > len(in)+doubtful {
		t.Fatalf("%d samples, want between %d and %d", got.Count, len(in), len(in)+doubtful)
	}
}

func TestMoreThanTheExactSamples(t *testing.T) {
	var w Window
	var all []time.Duration
	for i := range MaxExact + 50_000 {
		took := time.Duration(1+i*7919%100_003) * 50 * time.Microsecond
		w.Add(start.Add(time.Duration(i)*100*time.Millisecond), took)
		all = append(all, took)
	}
	end := start.Add((MaxExact + 50_000) * 100 * time.Millisecond)
	got := w.Quantiles(end)
	if got.Exact {
		t.Fatal("more samples than may be exact, and all of them are")
	}
	compare(t, got, all)

	// The bucketed samples are the oldest: when they have left, all is exact again.
	later := start.Add(24*time.Hour + 50_000*100*time.Millisecond + slotSpan)
	if got = w.Quantiles(later); !got.Exact || got.Count == 0 {
		t.Fatalf("%+v", got)
	}
	compare(t, got, all[len(all)-got.Count:])

	if got = w.Quantiles(later.Add(48 * time.Hour)); got != (Summary{Exact: true}) || cap(w.exact) > 64 {
		t.Errorf("%+v, room for %d samples, when all have left", got, cap(w.exact))
	}
}

func TestABucketedHalfHourLeavesWhole(t *testing.T) {
	w := NewPool(0).NewWindow()
	w.Add(start, time.Second) // 12:10, in the half hour that ends at 12:30
	end := start.Add(20 * time.Minute)
	if got := w.Quantiles(end.Add(Span - 1)); got.Count != 1 {
		t.Errorf("gone too early: %+v", got)
	}
	if got := w.Quantiles(end.Add(Span)); got.Count != 0 {
		t.Errorf("still there: %+v", got)
	}
}

func TestFewSamplesAreSmall(t *testing.T) {
	w := NewPool(1000).NewWindow()
	for range 5 {
		w.Add(start, time.Second)
	}
	if cap(w.exact) > 8 || w.slots != nil {
		t.Errorf("room for %d samples and %d slots", cap(w.exact), len(w.slots))
	}
}

func TestManyUseAWindowAtOnce(t *testing.T) {
	w := NewPool(500).NewWindow()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 500 {
				w.Add(start.Add(time.Duration(j)*time.Second), time.Duration(i*j))
				if j%100 == 0 {
					w.Quantiles(start)
					w.Slots(start)
				}
			}
		})
	}
	all.Wait()
	if got := w.Quantiles(start.Add(time.Hour)); got.Count != 2000 {
		t.Errorf("%+v", got)
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, pool := range map[string]*Pool{"exact": nil, "bucketed": NewPool(1000)} {
		b.Run(name, func(b *testing.B) {
			w, now := &Window{pool: pool}, start
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				w.Add(now, time.Duration(now.Unix()%977)*time.Millisecond)
			}
		})
	}
}

func BenchmarkQuantiles(b *testing.B) {
	var w Window
	for i := range MaxExact {
		w.Add(start, time.Duration(i*7919%100_003))
	}
	for b.Loop() {
		w.Quantiles(start)
	}
}
