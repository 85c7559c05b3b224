package cli

import (
	"context"
	"fmt"
	"time"

	"postern/configs"
	"postern/proxy/cli/term"
	"postern/proxy/fleet"
	"postern/proxy/retry"
	"postern/sync/pgstore"
)

type fleetAlertsCmd struct {
	fleetFlags
	thresholdFlags
}

// thresholdFlags say when an alert fires.
type thresholdFlags struct {
	DeadLetters int64         `default:"1" placeholder:"N" help:"Fire at N new dead letters of an endpoint within --dead-window, if those are more than in the time before it (${default})."`
	DeadWindow  time.Duration `default:"1h" placeholder:"DURATION" help:"What dead letters are counted over (${default})."`
	QueueAge    time.Duration `default:"30m" placeholder:"DURATION" help:"Fire when an event that is due was not tried once for this long (${default})."`
	P95         time.Duration `name:"p95" default:"2s" placeholder:"DURATION" help:"Fire when an endpoint's p95 over --since is above this (${default})."`
	P95Factor   float64       `name:"p95-factor" default:"4" placeholder:"N" help:"Fire when it is more than N times that of the day before (${default})."`
	MinSamples  int64         `default:"20" placeholder:"N" help:"With fewer samples a p95 is not judged (${default})."`
	StuckAfter  time.Duration `placeholder:"DURATION" help:"Fire when an event is unfinished for this long. Unless given: the longest possible retry window of its endpoint, by --config or the defaults."`
}

// Help is shown under the command's usage.
func (fleetAlertsCmd) Help() string {
	return "Exit code 0: none fires. Exit code 1: one does, or Postgres could not be asked; then standard error says that nothing was checked, and --json prints nothing. Exit code 2: wrong usage, such as an endpoint that no instance has reported. The same alerts for Prometheus are in configs/prometheus.\n\nExample:\n\n    postern fleet alerts || page-somebody\n    postern fleet alerts --since 1h --p95 800ms --dead-letters 10 --json"
}

// Validate is called by kong.
func (c *fleetAlertsCmd) Validate() error { return c.thresholdFlags.Validate() }

// Validate refuses thresholds that would never or always be passed.
func (c *thresholdFlags) Validate() error {
	switch {
	case c.DeadLetters < 1 || c.MinSamples < 1:
		return fmt.Errorf("--dead-letters and --min-samples must be at least 1")
	case c.DeadWindow <= 0 || c.QueueAge <= 0 || c.P95 <= 0 || c.StuckAfter < 0:
		return fmt.Errorf("--dead-window, --queue-age, --p95 and --stuck-after must be longer than nothing")
	case !(c.P95Factor > 1):
		return fmt.Errorf("--p95-factor must be more than 1")
	}
	return nil
}

// Run prints what fires.
func (c *fleetAlertsCmd) Run(s *session) error {
	return c.ask(s, func(ctx context.Context, f *fleet.Fleet, cfg central) error {
		if cfg.other != nil && c.StuckAfter == 0 {
			s.hint("the configuration has mistakes, and an event counts as stuck by what can be read of it (--stuck-after says it outright); `postern config check` names them.")
		}
		found, err := f.Alerts(ctx, c.thresholds(c.Endpoint, c.Since, cfg.Config))
		if err != nil {
			return fmt.Errorf("nothing was checked: %w", err)
		}
		if found.LiveInstances == 0 {
			fmt.Fprintln(s.err, "postern: no instance is alive: what the fleet has reported may be old.")
		}
		if c.JSON {
			err = s.encode(found)
		} else {
			err = s.alerts(found)
		}
		if err == nil && found.Firing {
			return errFailed
		}
		return err
	})
}

func (c *thresholdFlags) thresholds(endpoint string, since ago, cfg *configs.Config) fleet.Thresholds {
	return fleet.Thresholds{
		Endpoint: endpoint, Since: since.duration(), DeadLetters: c.DeadLetters, DeadWindow: c.DeadWindow, QueueAge: c.QueueAge,
		P95: c.P95, P95Factor: c.P95Factor, MinSamples: c.MinSamples, Windows: c.windows(cfg),
	}
}

// windows are the retry windows that the configuration gives to its endpoints.
func (c *thresholdFlags) windows(cfg *configs.Config) pgstore.Windows {
	if c.StuckAfter > 0 {
		return pgstore.Windows{Default: pgstore.Window{Longest: c.StuckAfter}}
	}
	w := pgstore.Windows{Default: window(cfg.Defaults), ByURL: make(map[string]pgstore.Window)}
	for i := range cfg.Endpoints {
		e := &cfg.Endpoints[i]
		if e.URL.Host == "" {
			continue // it could not be read
		}
		one := window(e.Policy)
		// What shares an endpoint_url has the longest window of all there: ad hoc targets that match are known by their origin,
		// and so is an endpoint whose url is no more than one.
		for _, t := range e.Match {
			atLeast(w.ByURL, t.Origin(), one)
		}
		atLeast(w.ByURL, e.URL.WithoutQuery(), one)
		if e.URL.WithoutQuery() == e.URL.Origin() {
			atLeast(w.ByURL, e.URL.Origin(), w.Default)
		}
	}
	return w
}

// atLeast puts the longer window of two.
func atLeast(windows map[string]pgstore.Window, url string, one pgstore.Window) {
	if other, ok := windows[url]; !ok || other.Longest < one.Longest {
		windows[url] = one
	}
}

func window(p configs.Policy) pgstore.Window {
	r := p.Retry
	return fleet.RetryWindow(retry.Policy{
		MaxAttempts: r.MaxAttempts, BaseDelay: r.BaseDelay, MaxDelay: r.MaxDelay, MaxRetryAfter: r.MaxRetryAfter, Schedule: r.Schedule, HasSchedule: r.HasSchedule,
	}, p.Timeout)
}

func (s *session) alerts(found fleet.Alerts) error {
	if !found.Firing {
		_, err := fmt.Fprintf(s.out, "%s. %s.\n", s.out.Paint(term.Good, "No alert fires"), term.Count(found.LiveInstances, "live instance"))
		return err
	}
	table := term.NewTable(term.Column{Title: "ALERT"}, term.Column{Title: "ENDPOINT"}, term.Column{Title: "VALUE", Right: true},
		term.Column{Title: "THRESHOLD", Right: true})
	for _, a := range found.Alerts {
		table.Row(term.Cell{Text: a.Name, Color: term.Bad}, term.Cell{Text: a.Endpoint}, term.Cell{Text: amount(a.Value, a.Unit)},
			term.Cell{Text: amount(a.Threshold, a.Unit)})
	}
	if err := table.Write(s.out); err != nil {
		return err
	}
	for _, a := range found.Alerts {
		fmt.Fprintf(s.out, "\n%s: %s\n  %s\n  -> %s\n", term.Clean(a.Endpoint), s.out.Paint(term.Strong, a.Name), term.Clean(a.Message), term.Clean(a.Action))
	}
	return nil
}

// amount writes an alert's number in its unit.
func amount(n float64, unit string) string {
	switch unit {
	case "seconds":
		return term.Age(seconds(n))
	case "milliseconds":
		return term.Millis(n)
	}
	return fmt.Sprint(n)
}
