package findings

import (
	"fmt"
	"slices"
	"time"
)

const (
	hour = int64(time.Hour / time.Microsecond)
	day  = 24 * hour
	// shortWindow is the longest analysed window that is cut into hours; a longer one is cut into days.
	shortWindow = 2 * day
	// minTrickle letters are the fewest in which evenness shows at all.
	minTrickle = 3
)

// trickle looks at the letters that more patience could have saved, without those of dense hours. They are a few a
// day, evenly, when
//
//   - there are at least minTrickle of them, and on average fewer than ClusterSize a day;
//   - cut into slots of an hour (windows up to 48 h) or of a day (longer ones), no slot has more than a third of them,
//     so that at least three slots have some;
//   - they reach over at least half of the window; and where slots are days, at least every other day has one.
func (a *Accumulator) trickle(name string, t *tally) (Finding, bool) {
	times := slices.DeleteFunc(slices.Clone(t.retried), denseHours(t.times))
	window := a.until.Sub(a.from).Microseconds()
	if len(times) < minTrickle || 2*(times[len(times)-1]-times[0]) < window {
		return Finding{}, false
	}
	slot := hour
	if window > shortWindow {
		slot = day
	}
	used, fullest := spread(times, a.from.UnixMicro(), slot)
	sparse := int64(len(times)) < ClusterSize*max(1, window/day)
	if !sparse || fullest > max(1, len(times)/3) || slot == day && int64(2*used) < window/day {
		return Finding{}, false
	}
	f := finding(Trickle, times)
	unit := "hours"
	if slot == day {
		unit = "days"
	}
	f.Message = fmt.Sprintf("%d events were given up, spread evenly over %d different %s: single failures that outlast the retries, no outage.", f.Count, used, unit)
	knob := "Raise retry.max_attempts for this endpoint, or shorten its timeout, so that an attempt that hangs gives way to the next one sooner"
	if class, _ := t.primary(); class == "timeout" {
		knob += " (most of them ran into it; where the receiver is known to need longer, lengthen it instead)"
	}
	f.Action = knob + ", then replay: " + replay(name)
	return f, true
}

// spread counts the slots that have a letter and the letters of the fullest one. times are sorted.
func spread(times []int64, from, slot int64) (used, fullest int) {
	current, n := int64(-1), 0
	for _, at := range times {
		if s := (at - from) / slot; s != current {
			current, n = s, 0
			used++
		}
		n++
		fullest = max(fullest, n)
	}
	return used, fullest
}

// densestHour returns the letters of the hour that has the most, the first such hour. times are sorted.
func densestHour(times []int64) (best []int64) {
	first := 0
	for last, at := range times {
		for at-times[first] >= hour {
			first++
		}
		if last+1-first > len(best) {
			best = times[first : last+1]
		}
	}
	return best
}

// denseHours tells whether a letter lies in any hour that makes a cluster. times are sorted.
func denseHours(times []int64) func(at int64) bool {
	type span struct{ from, until int64 }
	var dense []span
	for i := 0; i+ClusterSize <= len(times); i++ {
		from, until := times[i], times[i+ClusterSize-1]
		if until-from >= hour {
			continue
		}
		if n := len(dense); n > 0 && from <= dense[n-1].until {
			dense[n-1].until = until
		} else {
			dense = append(dense, span{from, until})
		}
	}
	return func(at int64) bool {
		_, found := slices.BinarySearchFunc(dense, at, func(s span, at int64) int {
			switch {
			case s.until < at:
				return -1
			case s.from > at:
				return 1
			}
			return 0
		})
		return found
	}
}

// within cuts the part of sorted times that lies in [from, until].
func within(times []int64, from, until int64) []int64 {
	lo, _ := slices.BinarySearch(times, from)
	hi, _ := slices.BinarySearch(times, until+1)
	return times[lo:hi]
}
