package quantile

import (
	"math"
	"slices"
	"time"
)

// Summary is what a window says about its samples.
type Summary struct {
	P50, P95, P99 time.Duration
	Count         int
	// Exact tells that all samples were at hand. Otherwise the quantiles are within 1 % of the exact ones.
	Exact bool
}

// values is a multiset of durations, part of it exact and part of it in buckets, both in ascending order.
type values struct {
	exact   []time.Duration
	buckets sketch
	n       int
}

func newValues(exact []time.Duration, buckets sketch) values {
	slices.Sort(exact)
	return values{exact: exact, buckets: buckets, n: len(exact) + buckets.count()}
}

func (v values) summary() Summary {
	return Summary{
		P50: v.quantile(0.50), P95: v.quantile(0.95), P99: v.quantile(0.99),
		Count: v.n, Exact: len(v.buckets) == 0,
	}
}

// quantile is PostgreSQL's percentile_cont: linear between the two samples around rank q·(n-1). Without samples it is
// zero.
func (v values) quantile(q float64) time.Duration {
	if v.n == 0 {
		return 0
	}
	rank := q * float64(v.n-1)
	low := math.Floor(rank)
	a := v.at(int(low))
	if low == rank {
		return duration(a)
	}
	b := v.at(int(low) + 1)
	whole := math.Floor(a) // apart, so that the nanoseconds of large durations are right
	return duration(whole) + duration(a-whole+(rank-low)*(b-a))
}

// at returns the value of that rank in nanoseconds, 0 being the smallest.
func (v values) at(rank int) float64 {
	before := 0 // samples in the buckets passed
	for _, b := range v.buckets {
		value := b.value()
		smaller, _ := slices.BinarySearch(v.exact, duration(math.Ceil(value)))
		if rank < before+smaller {
			break
		}
		if rank < before+smaller+int(b.n) {
			return value
		}
		before += int(b.n)
	}
	return float64(v.exact[rank-before])
}
