// Package trend tells an endpoint that is getting slower from one that has always been slow.
//
// It promises a pure judgement of a series of percentiles: the last two of its steps against the median of all earlier
// ones, so that a single bad half hour yesterday does not hide a slow one today. It leaves out where the series comes
// from (half hours of one instance, hours of a fleet) and what is too slow in itself: that is slow_p95 and the alerts.
package trend

import (
	"slices"
	"time"
)

// Point is what one step of a series had. Times are in milliseconds.
type Point struct {
	Start    time.Time
	P50, P95 float64
	Count    int64
}

// State is a judgement.
type State string

// The judgements.
const (
	// Unknown: too few samples, now or before.
	Unknown State = "unknown"
	// Steady: neither of the others.
	Steady State = "steady"
	// Slowing: p95 is at least Factor times what it was, and Margin above it.
	Slowing State = "slowing"
	// Faster is the reverse.
	Faster State = "faster"
)

const (
	// Factor is how many times the earlier p95 the recent one must be to say something. Traffic that does not change
	// moves by less from one half hour to the next.
	Factor = 1.5
	// Margin is by how many milliseconds it must differ: 2 ms instead of 1 ms is nobody's trouble.
	Margin = 25
	// MinSamples are needed on both sides; a p95 of fewer says more about chance.
	MinSamples = 20
)

// Trend is the recent p95 beside the earlier one. Both are nil where they are unknown.
type Trend struct {
	State      State    `json:"state"`
	RecentP95  *float64 `json:"recent_p95_ms"`
	EarlierP95 *float64 `json:"earlier_p95_ms"`
}

// Of judges a series with that step as it is now. The points may come in any order, and steps may be missing.
func Of(points []Point, step time.Duration, now time.Time) Trend {
	var recent, earlier []Point
	for _, p := range points {
		if p.Start.After(now.Add(-2 * step)) {
			recent = append(recent, p)
		} else {
			earlier = append(earlier, p)
		}
	}
	out := Trend{State: Unknown, RecentP95: mean(recent), EarlierP95: median(earlier)}
	if out.RecentP95 == nil || out.EarlierP95 == nil {
		return out
	}
	switch was, is := *out.EarlierP95, *out.RecentP95; {
	case is >= was*Factor && is-was >= Margin:
		out.State = Slowing
	case was >= is*Factor && was-is >= Margin:
		out.State = Faster
	default:
		out.State = Steady
	}
	return out
}

func enough(points []Point) bool {
	var n int64
	for _, p := range points {
		n += p.Count
	}
	return n >= MinSamples
}

// mean weighs each step by its samples.
func mean(points []Point) *float64 {
	if !enough(points) {
		return nil
	}
	sum, n := 0.0, 0.0
	for _, p := range points {
		sum, n = sum+p.P95*float64(p.Count), n+float64(p.Count)
	}
	out := sum / n
	return &out
}

// median counts each step once: an hour with ten times the traffic is no more usual than the others.
func median(points []Point) *float64 {
	if !enough(points) {
		return nil
	}
	all := make([]float64, 0, len(points))
	for _, p := range points {
		if p.Count > 0 {
			all = append(all, p.P95)
		}
	}
	slices.Sort(all)
	out := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	return &out
}
