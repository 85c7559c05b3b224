package fleet

import (
	"context"
	"time"

	"postern/proxy/trend"
	"postern/sync/pgstore"
)

// Series is an endpoint's percentiles hour by hour, with a judgement whether it is getting slower.
type Series struct {
	EndpointURL string      `json:"endpoint_url"`
	Trend       trend.Trend `json:"trend"`
	Hours       []Hour      `json:"buckets"`
}

// Hour is one of them. The names are those of the admin API's half hours.
type Hour struct {
	Start   time.Time `json:"start"`
	P50     float64   `json:"p50_ms"`
	P95     float64   `json:"p95_ms"`
	Samples int64     `json:"sample_count"`
}

// Series returns the series of every endpoint with samples since then, in order of endpoint_url. It never returns nil.
func (f *Fleet) Series(ctx context.Context, since time.Duration) ([]Series, error) {
	now, err := f.store.FleetNow(ctx)
	if err != nil {
		return nil, err
	}
	hours, err := f.store.FleetHours(ctx, since)
	out := []Series{}
	var points []trend.Point
	for i, h := range hours {
		if i == 0 || h.EndpointURL != hours[i-1].EndpointURL {
			out, points = append(out, Series{EndpointURL: h.EndpointURL}), points[:0]
		}
		s := &out[len(out)-1]
		s.Hours = append(s.Hours, Hour{h.Hour.UTC(), h.P50MS, h.P95MS, h.SampleCount})
		points = append(points, trend.Point{Start: h.Hour, P50: h.P50MS, P95: h.P95MS, Count: h.SampleCount})
		s.Trend = trend.Of(points, time.Hour, now)
	}
	return out, err
}

// Endpoints returns every endpoint as the fleet sees it, the slowest first. It never returns nil.
func (f *Fleet) Endpoints(ctx context.Context) ([]pgstore.EndpointHealth, error) {
	return f.Slow(ctx, SlowQuery{})
}

// mostBreakers bounds a list that would be as long as the fleet is large where everybody's receiver is down.
const mostBreakers = 2000

// Breakers returns where an endpoint is held back: instance by instance, 2,000 of them at most. It never returns nil.
func (f *Fleet) Breakers(ctx context.Context) ([]pgstore.Breaker, error) {
	list, err := f.store.FleetBreakers(ctx, mostBreakers)
	if list == nil {
		list = []pgstore.Breaker{}
	}
	return list, err
}
