package web

import (
	"context"
	"time"

	"postern/proxy/fleet"
)

// Windows of time that the page looks at.
const (
	day = 24 * time.Hour
	// heardOf is how long an instance that fell silent is still shown.
	heardOf = 7 * day
)

// summary is the fleet at a glance: what `fleet status` tells, with instances counted by state.
type summary struct {
	fleet.Status
	// Instances takes the place of the list, which is an answer of its own.
	Instances struct {
		Live    int `json:"live"`
		Silent  int `json:"silent"` // no heartbeat for two minutes, and no goodbye
		Stopped int `json:"stopped"`
	} `json:"instances"`
}

// Answers are the questions that the page asks. They cost Postgres little (status, instances, breakers), or a look at a
// day of counts (endpoints, latency, alerts) or of dead letters.
func Answers(f *fleet.Fleet, t fleet.Thresholds) []Answer {
	return []Answer{
		{"status", 3 * time.Second, func(ctx context.Context) (any, error) { return summarize(f.Status(ctx, "", heardOf)) }},
		{"instances", 5 * time.Second, func(ctx context.Context) (any, error) {
			st, err := f.Status(ctx, "", heardOf)
			return map[string]any{"instances": st.Instances, "now": st.Now}, err
		}},
		{"breakers", 3 * time.Second, list("breakers", f.Breakers)},
		{"endpoints", 10 * time.Second, list("endpoints", f.Endpoints)},
		{"latency", time.Minute, func(ctx context.Context) (any, error) {
			series, err := f.Series(ctx, day)
			return map[string]any{"hours": day.Hours(), "bucket_seconds": time.Hour.Seconds(), "endpoints": series}, err
		}},
		{"alerts", 10 * time.Second, func(ctx context.Context) (any, error) { return f.Alerts(ctx, t) }},
		{"dead-letters", 20 * time.Second, func(ctx context.Context) (any, error) { return f.DeadLetters(ctx, "", day) }},
	}
}

func list[T any](name string, ask func(context.Context) ([]T, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		found, err := ask(ctx)
		return map[string]any{name: found}, err
	}
}

func summarize(st fleet.Status, err error) (summary, error) {
	out := summary{Status: st}
	for _, i := range st.Instances {
		switch {
		case i.Live:
			out.Instances.Live++
		case i.StoppedAt != nil:
			out.Instances.Stopped++
		default:
			out.Instances.Silent++
		}
	}
	return out, err
}
