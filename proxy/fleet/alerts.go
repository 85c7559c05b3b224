package fleet

import (
	"context"
	"fmt"
	"time"

	"postern/sync/pgstore"
)

// The alerts, by name.
const (
	// AlertDeadLetters: more dead letters in the last window than in the one before it.
	AlertDeadLetters = "dead_letters_growing"
	// AlertQueueAge: an event that is due was not tried once for too long.
	AlertQueueAge = "queue_age"
	// AlertP95: an endpoint's p95 is over its threshold.
	AlertP95 = "p95_over_threshold"
	// AlertP95Jump: an endpoint's p95 is several times what it was the day before.
	AlertP95Jump = "p95_jump"
	// AlertStuck: an unfinished event is older than the longest possible retry window.
	AlertStuck = "stuck_event"
)

// Thresholds say when an alert fires.
type Thresholds struct {
	Endpoint    string
	Since       time.Duration // percentiles are over this long
	DeadLetters int64         // at least so many new ones
	DeadWindow  time.Duration // within this long, and more than in the same time before it
	QueueAge    time.Duration
	P95         time.Duration
	P95Factor   float64 // times the p95 of the day before
	MinSamples  int64   // fewer tell nothing about a p95
	Windows     pgstore.Windows
}

// Alert is one that fires.
type Alert struct {
	Name     string `json:"alert"`
	Endpoint string `json:"endpoint_url"`
	// Value and Threshold are in Unit: events, seconds or milliseconds.
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Unit      string  `json:"unit"`
	// Message says what was seen, Action what to do.
	Message string `json:"message"`
	Action  string `json:"action"`
}

// Alerts is the answer to a check.
type Alerts struct {
	Firing    bool      `json:"firing"`
	CheckedAt time.Time `json:"checked_at"`
	// LiveInstances is how many vouch for the numbers. With none of them alive, what is known may be old.
	LiveInstances int64   `json:"live_instances"`
	Alerts        []Alert `json:"alerts"`
}

// Alerts checks everything, in the order of the constants.
func (f *Fleet) Alerts(ctx context.Context, t Thresholds) (a Alerts, err error) {
	s, _, err := f.choose(ctx, t.Endpoint)
	if err != nil {
		return a, err
	}
	st, err := f.store.FleetStatus(ctx)
	if err != nil {
		return a, err
	}
	a = Alerts{CheckedAt: st.Now.UTC(), LiveInstances: st.Sync.Instances, Alerts: []Alert{}}
	for _, check := range []func(context.Context, selection, Thresholds) ([]Alert, error){f.deadLetters, f.queueAge, f.p95, f.stuck} {
		found, err := check(ctx, s, t)
		if err != nil {
			return a, err
		}
		a.Alerts = append(a.Alerts, found...)
	}
	a.Firing = len(a.Alerts) > 0
	return a, nil
}

func (f *Fleet) deadLetters(ctx context.Context, s selection, t Thresholds) (found []Alert, err error) {
	list, err := f.store.FleetDeadCounts(ctx, t.DeadWindow)
	for _, c := range list {
		if !s.has(c.EndpointURL) || c.Last < max(t.DeadLetters, 1) || c.Last <= c.Before {
			continue
		}
		found = append(found, Alert{
			Name: AlertDeadLetters, Endpoint: c.EndpointURL, Value: float64(c.Last), Threshold: float64(max(t.DeadLetters, c.Before+1)), Unit: "events",
			Message: fmt.Sprintf("%d given up in the last %s, %d in the %[2]s before.", c.Last, short(t.DeadWindow), c.Before),
			Action:  "See what they have in common: postern fleet dead-letters --endpoint " + c.EndpointURL,
		})
	}
	return found, err
}

func (f *Fleet) queueAge(ctx context.Context, s selection, t Thresholds) (found []Alert, err error) {
	list, err := f.store.FleetQueueAge(ctx, t.QueueAge)
	for _, w := range list {
		if !s.has(w.EndpointURL) {
			continue
		}
		found = append(found, waiting(AlertQueueAge, w, t.QueueAge, fmt.Sprintf("%s never tried for over %s, the oldest of them for %s.", plural(w.Events), short(t.QueueAge), age(w)),
			"More comes than may leave, or nothing leaves: look at the endpoint's breaker, pause, limits and concurrency (postern endpoints, on its instance)."))
	}
	return found, err
}

func (f *Fleet) stuck(ctx context.Context, s selection, t Thresholds) (found []Alert, err error) {
	list, err := f.store.FleetStuck(ctx, t.Windows)
	for _, w := range list {
		if !s.has(w.EndpointURL) {
			continue
		}
		window, ok := t.Windows.ByURL[w.EndpointURL]
		if !ok {
			window = t.Windows.Default
		}
		found = append(found, waiting(AlertStuck, w, window.Longest, fmt.Sprintf("%s older than the longest retry window (%s), the oldest of them %s: something is stuck.", plural(w.Events), short(window.Longest), age(w)),
			fmt.Sprintf("Look at it on its instance (postern events show %s): an endpoint that is paused, left the configuration, or has its breaker open holds events back.", w.EventID)))
	}
	return found, err
}

func waiting(name string, w pgstore.Waiting, over time.Duration, message, action string) Alert {
	if !w.Live {
		action = "Its instance " + w.InstanceID + " is not alive: start it again with its spool, or see why its heartbeats do not arrive."
	}
	return Alert{
		Name: name, Endpoint: w.EndpointURL, Value: w.AgeSeconds, Threshold: over.Seconds(), Unit: "seconds", Message: message, Action: action,
	}
}

func plural(events int64) string {
	if events == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", events)
}

func age(w pgstore.Waiting) string {
	return short(time.Duration(w.AgeSeconds * float64(time.Second)))
}
