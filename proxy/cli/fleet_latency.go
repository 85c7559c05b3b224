package cli

import (
	"context"
	"fmt"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/fleet"
	"postern/sync/pgstore"
)

// barCells is how wide a bar in a table is.
const barCells = 12

type fleetSlowCmd struct {
	fleetFlags
	P95        time.Duration `name:"p95" default:"2s" placeholder:"DURATION" help:"A p95 above this is slow (${default})."`
	MinSamples int64         `default:"20" placeholder:"N" help:"With fewer samples an endpoint is not judged (${default})."`
}

// Help is shown under the command's usage.
func (fleetSlowCmd) Help() string {
	return "Without flags this is the view slow_endpoints: the last 24 hours.\n\nExample:\n\n    postern fleet slow\n    postern fleet slow --p95 500ms --since 1h"
}

// Run prints one line per slow endpoint, the slowest first.
func (c *fleetSlowCmd) Run(s *session) error {
	return c.ask(s, func(ctx context.Context, f *fleet.Fleet, _ central) error {
		list, err := f.Slow(ctx, fleet.SlowQuery{Endpoint: c.Endpoint, Since: c.Since.duration(), OverP95: c.P95, MinSamples: c.MinSamples})
		if err != nil {
			return err
		}
		if c.JSON {
			return s.encode(map[string]any{"endpoints": list})
		}
		if len(list) == 0 {
			_, err := fmt.Fprintf(s.out, "No endpoint with at least %d samples has a p95 over %s in the last %s.\n", c.MinSamples, c.P95, c.Since)
			return err
		}
		return s.slowTable(list)
	})
}

func (s *session) slowTable(list []pgstore.EndpointHealth) error {
	table := term.NewTable(s.withBar(term.Column{Title: "ENDPOINT"}, term.Column{Title: "BREAKER"}, term.Column{Title: "P50", Right: true},
		term.Column{Title: "P95", Right: true}, term.Column{Title: "P99", Right: true}, term.Column{Title: "SAMPLES", Right: true})...)
	for _, h := range list {
		table.Row(term.Cell{Text: h.EndpointURL}, breakerCell(h.State), term.Cell{Text: latency(h.P50MS)}, term.Cell{Text: latency(h.P95MS), Color: term.Warn},
			term.Cell{Text: latency(h.P99MS)}, term.Cell{Text: fmt.Sprint(h.SampleCount)}, s.bar(h.P95MS, list[0].P95MS))
	}
	return table.Write(s.out)
}

// withBar adds a column for bars where they are drawn.
func (s *session) withBar(columns ...term.Column) []term.Column {
	if s.out.TTY {
		columns = append(columns, term.Column{Title: "P95 BESIDE THE SLOWEST"})
	}
	return columns
}

func (s *session) bar(ms, most *float64) term.Cell {
	if ms == nil || most == nil {
		return term.Cell{}
	}
	return term.Cell{Text: s.out.Bar(*ms, *most, barCells), Color: term.Warn}
}

type fleetPercentilesCmd struct{ fleetFlags }

// Help is shown under the command's usage.
func (fleetPercentilesCmd) Help() string {
	return "Exact ones are computed from every sample; merged ones from counts that are kept for longer, and are within 1 % of those.\n\nExample:\n\n    postern fleet percentiles --endpoint partner-a --since 24h\n    postern fleet percentiles --since 30d --json"
}

// Run prints one line per endpoint, the slowest first.
func (c *fleetPercentilesCmd) Run(s *session) error {
	return c.ask(s, func(ctx context.Context, f *fleet.Fleet, _ central) error {
		list, err := f.Percentiles(ctx, c.Endpoint, c.Since.duration())
		if err != nil {
			return err
		}
		if c.JSON {
			return s.encode(map[string]any{"since_seconds": c.Since.duration().Seconds(), "endpoints": list})
		}
		if len(list) == 0 {
			_, err := fmt.Fprintf(s.out, "No samples in the last %s.\n", c.Since)
			return err
		}
		return s.percentileTable(list)
	})
}

func (s *session) percentileTable(list []pgstore.Percentiles) error {
	table := term.NewTable(s.withBar(term.Column{Title: "ENDPOINT"}, term.Column{Title: "P50", Right: true}, term.Column{Title: "P95", Right: true},
		term.Column{Title: "P99", Right: true}, term.Column{Title: "SAMPLES", Right: true}, term.Column{Title: "HOW"})...)
	for _, p := range list {
		how := "merged"
		if p.Exact {
			how = "exact"
		}
		table.Row(term.Cell{Text: p.EndpointURL}, term.Cell{Text: latency(p.P50MS)}, term.Cell{Text: latency(p.P95MS)}, term.Cell{Text: latency(p.P99MS)},
			term.Cell{Text: fmt.Sprint(p.SampleCount)}, term.Cell{Text: how, Color: term.Faint}, s.bar(p.P95MS, list[0].P95MS))
	}
	return table.Write(s.out)
}
