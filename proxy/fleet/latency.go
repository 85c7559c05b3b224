package fleet

import (
	"cmp"
	"context"
	"slices"
	"time"

	"postern/sync/pgstore"
)

// healthPeriod is what the percentiles of endpoint_health are over.
const healthPeriod = 24 * time.Hour

// SlowQuery says what is slow. Zero fields take everything.
type SlowQuery struct {
	Endpoint   string
	Since      time.Duration // percentiles are over this long
	OverP95    time.Duration
	MinSamples int64
}

// Slow returns the endpoints whose p95 is above a bound, the slowest first. It never returns nil.
func (f *Fleet) Slow(ctx context.Context, q SlowQuery) ([]pgstore.EndpointHealth, error) {
	s, _, err := f.choose(ctx, q.Endpoint)
	if err != nil {
		return nil, err
	}
	if q.Since == healthPeriod || q.Since == 0 {
		list, err := f.store.FleetHealth(ctx, pgstore.HealthFilter{OverP95: q.OverP95, MinSamples: q.MinSamples})
		return pick(s, list, func(h pgstore.EndpointHealth) string { return h.EndpointURL }), err
	}
	list, err := f.store.FleetHealth(ctx, pgstore.HealthFilter{})
	if err != nil {
		return nil, err
	}
	samples, err := f.store.FleetP95(ctx, q.Since, 0)
	return slowest(pick(s, list, func(h pgstore.EndpointHealth) string { return h.EndpointURL }), samples, q), err
}

// slowest puts the percentiles of another period into the health of endpoints, and keeps what is slow by them.
func slowest(list []pgstore.EndpointHealth, samples []pgstore.Percentiles, q SlowQuery) []pgstore.EndpointHealth {
	byURL := make(map[string]pgstore.Percentiles, len(samples))
	for _, p := range samples {
		byURL[p.EndpointURL] = p
	}
	out := make([]pgstore.EndpointHealth, 0, len(list))
	for _, h := range list {
		p := byURL[h.EndpointURL]
		h.P50MS, h.P95MS, h.P99MS, h.SampleCount = p.P50MS, p.P95MS, p.P99MS, p.SampleCount
		if p.SampleCount > 0 && p.SampleCount >= q.MinSamples && *p.P95MS > millis(q.OverP95) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b pgstore.EndpointHealth) int {
		return cmp.Or(cmp.Compare(*b.P95MS, *a.P95MS), cmp.Compare(a.EndpointURL, b.EndpointURL))
	})
	return out
}

// Percentiles returns those of one endpoint, or of every one that has samples in that time, the slowest first. It never
// returns nil.
func (f *Fleet) Percentiles(ctx context.Context, endpoint string, since time.Duration) ([]pgstore.Percentiles, error) {
	_, urls, err := f.choose(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	list, err := f.store.FleetPercentilesOf(ctx, urls, since)
	if list == nil {
		list = []pgstore.Percentiles{}
	}
	return list, err
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
