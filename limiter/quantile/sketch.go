package quantile

import (
	"math"
	"slices"
	"time"
)

// gamma is the ratio of one bucket's upper bound to the one before. A value is reported as the point of its bucket
// from which both ends are equally far, (gamma-1)/(gamma+1) = 0.99 %.
const gamma = 1.02

var logGamma = math.Log(gamma)

// bucket counts the samples in (gamma^(index-1), gamma^index] nanoseconds; index 0 takes those of no time at all, and index 1
// those of a nanosecond.
type bucket struct {
	index int32
	n     uint32
}

func indexOf(d time.Duration) int32 {
	if d <= 0 {
		return 0
	}
	return max(1, int32(math.Ceil(math.Log(float64(d))/logGamma)))
}

// value stands for all durations of the bucket. It is in nanoseconds, and not rounded: what is made of several is.
func (b bucket) value() float64 {
	if b.index == 0 {
		return 0
	}
	return 2 * math.Pow(gamma, float64(b.index)) / (gamma + 1)
}

// duration rounds to a nanosecond.
func duration(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}

// sketch counts samples in buckets, sparse and in ascending order. Few values take less room than exact samples, and
// all durations there are take 18 KB.
type sketch []bucket

func (s *sketch) add(d time.Duration) { s.merge(bucket{index: indexOf(d), n: 1}) }

func (s *sketch) merge(b bucket) {
	i, found := slices.BinarySearchFunc(*s, b.index, func(e bucket, index int32) int { return int(e.index - index) })
	if !found {
		*s = slices.Insert(*s, i, b)
		return
	}
	(*s)[i].n += b.n
}

func (s sketch) count() (n int) {
	for _, b := range s {
		n += int(b.n)
	}
	return n
}
