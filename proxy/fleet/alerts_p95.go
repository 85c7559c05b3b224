package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"postern/sync/pgstore"
)

// day is how far back a p95 is compared: traffic has the rhythm of days.
const day = 24 * time.Hour

// p95 compares with the threshold, and with a period of the same length a day before; of one longer than a day, with the
// one before it.
func (f *Fleet) p95(ctx context.Context, s selection, t Thresholds) ([]Alert, error) {
	now, err := f.store.FleetP95(ctx, t.Since, 0)
	if err != nil {
		return nil, err
	}
	back := max(t.Since, day)
	before, err := f.store.FleetP95(ctx, t.Since+back, back)
	if err != nil {
		return nil, err
	}
	url := func(p pgstore.Percentiles) string { return p.EndpointURL }
	return judgeP95(pick(s, now, url), before, t), nil
}

// judgeP95 gives an endpoint at most one alert of each kind, thresholds first.
func judgeP95(now, before []pgstore.Percentiles, t Thresholds) (found []Alert) {
	then := make(map[string]float64, len(before))
	for _, p := range before {
		if p.SampleCount >= t.MinSamples && p.P95MS != nil {
			then[p.EndpointURL] = *p.P95MS
		}
	}
	var jumps []Alert
	for _, p := range now {
		if p.SampleCount < t.MinSamples || p.P95MS == nil {
			continue
		}
		if bound := millis(t.P95); *p.P95MS > bound {
			found = append(found, p95Alert(AlertP95, p, bound, fmt.Sprintf("p95 %.0f ms of %d samples in the last %s, over %.0f ms.", *p.P95MS, p.SampleCount, short(t.Since), bound)))
		}
		old, known := then[p.EndpointURL]
		// Under a millisecond everything is many times something.
		if bound := t.P95Factor * max(old, 1); known && *p.P95MS > bound {
			jumps = append(jumps, p95Alert(AlertP95Jump, p, bound, fmt.Sprintf("p95 %.0f ms, the day before %.0f ms: over %g times.", *p.P95MS, old, t.P95Factor)))
		}
	}
	return append(found, jumps...)
}

func p95Alert(name string, p pgstore.Percentiles, bound float64, message string) Alert {
	return Alert{
		Name: name, Endpoint: p.EndpointURL, Value: *p.P95MS, Threshold: bound, Unit: "milliseconds", Message: message,
		Action: "Ask the receiver what became slow; until then its timeout and concurrency bound what it takes (postern fleet percentiles --endpoint " + p.EndpointURL + ").",
	}
}

// short writes a duration as a person types it: 24h, 1h30m.
func short(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
