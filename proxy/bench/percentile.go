package main

import (
	"math"
	"slices"
	"time"
)

// latencies are exact percentiles: all samples are kept and sorted.
type latencies struct {
	P50, P90, P99, Max time.Duration
}

func summarise(samples []time.Duration) latencies {
	if len(samples) == 0 {
		return latencies{}
	}
	slices.Sort(samples)
	return latencies{percentile(samples, 0.50), percentile(samples, 0.90), percentile(samples, 0.99), samples[len(samples)-1]}
}

// percentile is the nearest rank: the smallest sample that at least the part p of all samples do not exceed. samples is
// sorted and not empty, p in (0, 1].
func percentile(samples []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p * float64(len(samples))))
	return samples[min(max(rank, 1), len(samples))-1]
}

// spread is one quantity over all rounds.
type spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"`
}

// over makes a spread of at least one value. The median of an even number is the mean of the middle two.
func over(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	median := sorted[half]
	if len(sorted)%2 == 0 {
		median = (sorted[half-1] + sorted[half]) / 2
	}
	return spread{median, sorted[0], sorted[len(sorted)-1], values}
}

// each compares round by round: the two of one round had the same machine under them.
func each(subject, reference []float64, compare func(a, b float64) float64) []float64 {
	out := make([]float64, len(subject))
	for i := range subject {
		out[i] = compare(subject[i], reference[i])
	}
	return out
}
