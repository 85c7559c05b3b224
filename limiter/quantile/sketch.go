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

// bucket counts the samples in (gamma^(index-1), gamma^index] nanoseconds; index 0 takes those of a nanosecond or less.
type bucket struct {
	index int32
	n     uint32
}

func indexOf(d time.Duration) int32 {
	if d <= 1 {
		return 0
	}
	return int32(math.Ceil(math.Log(float64(d)) / logGamma))
}

// value is the duration that stands for all of the bucket.
func (b bucket) value() time.Duration {
	if b.index == 0 {
		return 0
	}
	v := 2 * math.Pow(gamma, float64(b.index)) / (gamma + 1)
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(v))
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
