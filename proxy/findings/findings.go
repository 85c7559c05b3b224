// Package findings reads dead letters the way an operator would: per endpoint, what they died of, when, and which of
// four known patterns they make, each with what to do about it.
//
// It promises the same result for the same letters in whatever order they come, and memory of eight bytes per letter
// beside a little per endpoint. It is pure: no clock, no I/O. It leaves out where letters come from, and judges by
// class, status and time alone: what an application sent is never looked at.
package findings

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Letter is one dead letter, as far as it matters here.
type Letter struct {
	Endpoint   string
	DeadAt     time.Time
	StatusCode int    // of the last attempt; 0 where no response headers came
	Error      string // class of the last attempt, such as timeout or http_503
	Attempts   int
}

// Analysis sums up one endpoint's dead letters. The JSON names are the admin API's.
type Analysis struct {
	Endpoint  string `json:"endpoint"`
	DeadCount int    `json:"dead_count"`
	// PrimaryError is the most frequent class; of equally frequent ones the first in the alphabet.
	PrimaryError string `json:"primary_error"`
	// PrimaryStatusCode is the most frequent status among the letters of PrimaryError (the lowest of equally frequent
	// ones), nil where they got no response.
	PrimaryStatusCode *int      `json:"primary_status_code"`
	FirstDead         time.Time `json:"first_dead"`
	LastDead          time.Time `json:"last_dead"`
	AvgAttempts       float64   `json:"avg_attempts"` // to two decimals
	// Findings are in the order of the Pattern constants, each pattern at most once.
	Findings []Finding `json:"findings"`
}

// Accumulator takes letters one by one. It is not safe for concurrent use.
type Accumulator struct {
	from, until time.Time
	endpoints   map[string]*tally
}

// tally is what is kept of one endpoint.
type tally struct {
	causes   map[cause]int
	attempts int
	times    []int64            // Unix microseconds of every letter
	retried  []int64            // of those that more patience could have saved
	denied   []int64            // 401 and 403
	limited  []int64            // 429
	minutes  map[int64]*traffic // answers by Unix minute
}

type cause struct {
	class  string
	status int
}

// New starts an analysis of the letters that died in [from, until). Letters outside it are left out.
func New(from, until time.Time) *Accumulator {
	return &Accumulator{from: from, until: until, endpoints: make(map[string]*tally)}
}

// Add counts one dead letter.
func (a *Accumulator) Add(l Letter) {
	if l.DeadAt.Before(a.from) || !l.DeadAt.Before(a.until) {
		return
	}
	t := a.tally(l.Endpoint)
	t.causes[cause{l.Error, l.StatusCode}]++
	t.attempts += l.Attempts
	at := l.DeadAt.UnixMicro()
	t.times = append(t.times, at)
	switch {
	case l.StatusCode == 401 || l.StatusCode == 403:
		t.denied = append(t.denied, at)
	case l.StatusCode == 429:
		t.limited = append(t.limited, at)
	case l.Attempts > 1 || transient(l):
		t.retried = append(t.retried, at)
	}
}

func (a *Accumulator) tally(endpoint string) *tally {
	t := a.endpoints[endpoint]
	if t == nil {
		t = &tally{causes: make(map[cause]int)}
		a.endpoints[endpoint] = t
	}
	return t
}

// transient tells a letter whose last failure is one that retries are for. One that took several attempts counts as
// well, whatever it ended with: retry.statuses can make any status transient.
func transient(l Letter) bool {
	switch l.Error {
	case "dns", "connect", "tls", "timeout", "connection", "body_rule":
		return true
	}
	return l.StatusCode == 408 || l.StatusCode == 425 || l.StatusCode >= 500
}

// Result is one Analysis per endpoint that has dead letters, the one with the most first, then by name. It never
// returns nil, and more letters may be added after it.
func (a *Accumulator) Result() []Analysis {
	out := make([]Analysis, 0, len(a.endpoints))
	for name, t := range a.endpoints {
		if len(t.times) > 0 {
			out = append(out, a.analyse(name, t))
		}
	}
	slices.SortFunc(out, func(x, y Analysis) int {
		return cmp.Or(cmp.Compare(y.DeadCount, x.DeadCount), cmp.Compare(x.Endpoint, y.Endpoint))
	})
	return out
}

func (a *Accumulator) analyse(name string, t *tally) Analysis {
	for _, times := range [][]int64{t.times, t.retried, t.denied, t.limited} {
		slices.Sort(times)
	}
	class, status := t.primary()
	return Analysis{
		Endpoint:          name,
		DeadCount:         len(t.times),
		PrimaryError:      class,
		PrimaryStatusCode: status,
		FirstDead:         moment(t.times[0]),
		LastDead:          moment(t.times[len(t.times)-1]),
		AvgAttempts:       math.Round(100*float64(t.attempts)/float64(len(t.times))) / 100,
		Findings:          a.patterns(name, t),
	}
}

// primary finds the most frequent class and, within it, the most frequent status.
func (t *tally) primary() (class string, status *int) {
	classes := make(map[string]int)
	for c, n := range t.causes {
		classes[c.class] += n
	}
	class = mostFrequent(classes)
	statuses := make(map[int]int)
	for c, n := range t.causes {
		if c.class == class {
			statuses[c.status] += n
		}
	}
	if code := mostFrequent(statuses); code != 0 {
		return class, &code
	}
	return class, nil
}

// mostFrequent breaks ties by the smaller key, so that the answer does not depend on the order of a map.
func mostFrequent[K cmp.Ordered](counts map[K]int) (best K) {
	most := 0
	for key, n := range counts {
		if n > most || n == most && key < best {
			best, most = key, n
		}
	}
	return best
}

func moment(micro int64) time.Time { return time.UnixMicro(micro).UTC() }
