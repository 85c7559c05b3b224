package findings

import (
	"slices"
	"time"
)

// traffic is what an endpoint answered in one minute.
type traffic struct{ taken, refused int }

// Answer counts one attempt's answer, delivered or not, dead letter or not: from the minutes in which an endpoint said
// 429 Result derives how much it takes. It is optional and comes after the letters: answers of an endpoint of which no
// letter ended with 429 are not looked at, so that only those who need the memory (a little per minute) take it.
func (a *Accumulator) Answer(endpoint string, at time.Time, statusCode int) {
	switch statusCode {
	case 0:
	case 429:
		a.Minute(endpoint, at, 0, 1)
	default:
		a.Minute(endpoint, at, 1, 0)
	}
}

// Minute counts answers that somebody has added up: of the minute that at lies in, or of some of it.
func (a *Accumulator) Minute(endpoint string, at time.Time, taken, refused int) {
	if at.Before(a.from) || !at.Before(a.until) {
		return
	}
	t := a.endpoints[endpoint]
	if t == nil || len(t.limited) == 0 {
		return
	}
	if t.minutes == nil {
		t.minutes = make(map[int64]*traffic)
	}
	minute := at.Unix() / 60
	if t.minutes[minute] == nil {
		t.minutes[minute] = &traffic{}
	}
	t.minutes[minute].taken += taken
	t.minutes[minute].refused += refused
}

// taken is how many requests the endpoint let through in the median minute in which it also refused some; 0 where
// none is known. The median, because the first refusal falls into a minute that was nearly over, and because one minute
// in which the receiver had other troubles should not decide.
func (t *tally) taken() int {
	var counts []int
	for _, minute := range t.minutes {
		if minute.refused > 0 {
			counts = append(counts, minute.taken)
		}
	}
	if len(counts) == 0 {
		return 0
	}
	slices.Sort(counts)
	return counts[(len(counts)-1)/2]
}
