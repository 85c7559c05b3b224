package admin

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"postern/proxy/trend"
)

// LatencySlot is what one half hour of an endpoint had.
type LatencySlot struct {
	Start    time.Time
	P50, P95 time.Duration
	Count    int
}

// Latency gives the half hours of the last 24 h that have samples, oldest first: of one endpoint, or of every one for
// an empty name.
type Latency func(endpoint string) map[string][]LatencySlot

const (
	latencyStep = 30 * time.Minute
	latencyDay  = 24 // hours of history there are
	// latencyMost bounds the answer about all endpoints: those with the most samples.
	latencyMost = 500
	// latencyFresh is how long the answer about all endpoints is used again, and busyShare how much of one processor
	// its making may take at most.
	latencyFresh = 15 * time.Second
	busyShare    = 20
)

type latencyJSON struct {
	Name    string        `json:"name"`
	Trend   trend.Trend   `json:"trend"`
	Buckets []latencySlot `json:"buckets"`
}

type latencySlot struct {
	Start   *time.Time `json:"start"`
	P50     float64    `json:"p50_ms"`
	P95     float64    `json:"p95_ms"`
	Samples int        `json:"sample_count"`
}

// latencies keeps the answer about all endpoints, whose half hours take a while to sort.
type latencies struct {
	mu    sync.Mutex // guards what follows, and is held while it is made anew: one maker at a time
	all   []latencyJSON
	left  int
	until time.Time
}

func (l *latencies) get(read Latency) ([]latencyJSON, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := time.Now()
	if began.Before(l.until) {
		return l.all, l.left
	}
	slots := read("")
	all := make([]latencyJSON, 0, len(slots))
	for name, list := range slots {
		if len(list) > 0 {
			all = append(all, latencyOf(name, list, began))
		}
	}
	slices.SortFunc(all, func(a, b latencyJSON) int {
		return cmp.Or(cmp.Compare(b.samples(), a.samples()), cmp.Compare(a.Name, b.Name))
	})
	l.all, l.left = all[:min(len(all), latencyMost)], max(0, len(all)-latencyMost)
	l.until = time.Now().Add(max(latencyFresh, busyShare*time.Since(began)))
	return l.all, l.left
}

func (l *latencyJSON) samples() (n int) {
	for _, b := range l.Buckets {
		n += b.Samples
	}
	return n
}

func latencyOf(name string, list []LatencySlot, now time.Time) latencyJSON {
	out := latencyJSON{Name: name, Buckets: make([]latencySlot, 0, len(list))}
	points := make([]trend.Point, 0, len(list))
	for _, s := range list {
		p50, p95 := milliseconds(s.P50), milliseconds(s.P95)
		out.Buckets = append(out.Buckets, latencySlot{stamp(s.Start), p50, p95, s.Count})
		points = append(points, trend.Point{Start: s.Start, P50: p50, P95: p95, Count: int64(s.Count)})
	}
	out.Trend = trend.Of(points, latencyStep, now)
	return out
}

// since leaves out what began earlier. The trend is over all there is, whatever is shown.
func (l latencyJSON) since(from time.Time) latencyJSON {
	l.Buckets = slices.DeleteFunc(slices.Clone(l.Buckets), func(b latencySlot) bool { return b.Start.Add(latencyStep).Before(from) })
	return l
}

// latencyHours reads how far back to look.
func latencyHours(r *http.Request) (hours int, from time.Time, err error) {
	params, err := parameters(r, "hours")
	if err == nil {
		hours, err = params.number("hours", latencyDay, latencyDay)
	}
	return hours, time.Now().Add(-time.Duration(hours) * time.Hour), err
}

func (h *Handler) latency(r *http.Request) (reply, error) {
	hours, from, err := latencyHours(r)
	if err != nil {
		return reply{}, err
	}
	var all []latencyJSON
	left := 0
	if h.parts.Latency != nil {
		all, left = h.latencies.get(h.parts.Latency)
	}
	shown := make([]latencyJSON, 0, len(all))
	for _, l := range all {
		shown = append(shown, l.since(from))
	}
	return reply{body: struct {
		Hours     int           `json:"hours"`
		Step      float64       `json:"bucket_seconds"`
		Endpoints []latencyJSON `json:"endpoints"`
		LeftOut   int           `json:"left_out"` // endpoints beyond the first 500
	}{hours, latencyStep.Seconds(), shown, left}}, nil
}

func (h *Handler) lookAtLatency(r *http.Request, name string, _ *control) (reply, error) {
	hours, from, err := latencyHours(r)
	if err != nil {
		return reply{}, err
	}
	if _, ok := h.parts.Endpoints.Get(name); !ok {
		return reply{}, noEndpoint
	}
	out := latencyJSON{Name: name, Trend: trend.Trend{State: trend.Unknown}, Buckets: []latencySlot{}}
	if h.parts.Latency != nil {
		out = latencyOf(name, h.parts.Latency(name)[name], time.Now()).since(from)
	}
	return reply{body: struct {
		Hours int     `json:"hours"`
		Step  float64 `json:"bucket_seconds"`
		latencyJSON
	}{hours, latencyStep.Seconds(), out}}, nil
}
