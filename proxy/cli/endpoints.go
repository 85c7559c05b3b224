package cli

import (
	"context"
	"fmt"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type endpointsCmd struct {
	List   endpointsListCmd   `cmd:"" default:"withargs" help:"List endpoints (what happens when no subcommand is given)."`
	Show   endpointsShowCmd   `cmd:"" help:"Show one endpoint with its breaker, limits and latencies."`
	Pause  endpointsPauseCmd  `cmd:"" help:"Send nothing to an endpoint until it is resumed; its events wait."`
	Resume endpointsResumeCmd `cmd:"" help:"Send to a paused endpoint again."`
	Reset  endpointsResetCmd  `cmd:"" help:"Close an endpoint's breaker."`
}

// Help is shown under the command's usage.
func (endpointsCmd) Help() string {
	return "Example:\n\n    postern endpoints\n    postern endpoints show partner-a"
}

type endpointsListCmd struct {
	adminFlags
	jsonFlag
}

// Help is shown under the command's usage.
func (endpointsListCmd) Help() string {
	return "Example:\n\n    postern endpoints\n    postern endpoints list --json"
}

// Run prints one line per endpoint.
func (c *endpointsListCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Endpoints(context.Background())
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	if len(reply.Value.Endpoints) == 0 {
		_, err := fmt.Fprintln(s.out, "No endpoints: none is configured, and nothing was sent yet.")
		return err
	}
	table := term.NewTable(term.Column{Title: "ENDPOINT"}, term.Column{Title: "BREAKER"},
		term.Column{Title: "PENDING", Right: true}, term.Column{Title: "RETRYING", Right: true},
		term.Column{Title: "IN FLIGHT", Right: true}, term.Column{Title: "DEAD", Right: true},
		term.Column{Title: "P50", Right: true, Extra: true}, term.Column{Title: "P95", Right: true}, term.Column{Title: "P99", Right: true, Extra: true},
		term.Column{Title: "NOTE", Cut: true})
	for _, e := range reply.Value.Endpoints {
		table.Row(term.Cell{Text: e.Name}, breakerCell(e.Breaker.State),
			term.Cell{Text: fmt.Sprint(e.Queue.Pending)}, term.Cell{Text: fmt.Sprint(e.Queue.AwaitingRetry), Color: some(e.Queue.AwaitingRetry, term.Warn)},
			term.Cell{Text: fmt.Sprint(e.Queue.InFlight)}, term.Cell{Text: fmt.Sprint(e.Queue.DeadLetter), Color: some(e.Queue.DeadLetter, term.Bad)},
			term.Cell{Text: latency(e.P50Ms)}, term.Cell{Text: latency(e.P95Ms)}, term.Cell{Text: latency(e.P99Ms)}, s.note(e))
	}
	return table.Write(s.out)
}

func breakerCell(state string) term.Cell {
	colors := map[string]term.Color{"closed": term.Good, "half_open": term.Warn, "open": term.Bad}
	return term.Cell{Text: dash(state), Color: colors[state]}
}

func latency(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return term.Millis(*ms)
}

type endpointsShowCmd struct {
	adminFlags
	jsonFlag
	Name string `arg:"" help:"Endpoint: a configured name, or an origin such as https://partner.example."`
}

// Help is shown under the command's usage.
func (endpointsShowCmd) Help() string {
	return "Example:\n\n    postern endpoints show partner-a\n    postern endpoints show https://partner.example"
}

// Run prints what holds an endpoint back, and how fast it answers.
func (c *endpointsShowCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Endpoint(context.Background(), c.Name)
	if err != nil {
		return meant(admin, c.Name, err)
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	return s.facts(s.endpointFacts(reply.Value))
}

func (s *session) endpointFacts(e client.Endpoint) []fact {
	now := s.now()
	breaker := breakerCell(e.Breaker.State)
	state := breaker.Text
	if e.Breaker.OpenedAt != nil && e.Breaker.State != "closed" {
		state += ", opened " + term.When(*e.Breaker.OpenedAt, now)
	}
	facts := []fact{
		{name: "endpoint", value: e.Name},
		{name: "url", value: dash(e.URL)},
		{name: "breaker", value: state, color: breaker.Color},
		{name: "consecutive failures", value: fmt.Sprintf("%d of %d", e.Breaker.ConsecutiveFailures, e.Breaker.FailureThreshold)},
		{name: "cooldown", value: fmt.Sprintf("%gs", e.Breaker.CooldownSeconds)},
		{name: "queue", value: fmt.Sprintf("%d pending, %d awaiting retry, %d in flight, %d dead letters",
			e.Queue.Pending, e.Queue.AwaitingRetry, e.Queue.InFlight, e.Queue.DeadLetter)},
		{name: "latency", value: fmt.Sprintf("p50 %s, p95 %s, p99 %s (%s)",
			latency(e.P50Ms), latency(e.P95Ms), latency(e.P99Ms), term.Count(e.SampleCount, "sample"))},
		{name: "concurrency", value: fmt.Sprint(e.Limiter.Concurrency)},
	}
	for _, l := range e.Limiter.Limits {
		facts = append(facts, fact{name: "limit", value: fmt.Sprintf("%d of %d in %gs", l.Used, l.Limit, l.WindowSeconds)})
	}
	if e.Limiter.NextAllowedAt != nil {
		facts = append(facts, fact{name: "next allowed", value: term.When(*e.Limiter.NextAllowedAt, now)})
	}
	if note := s.note(e); note.Text != "" {
		facts = append(facts, fact{name: "note", value: note.Text, color: note.Color})
	}
	return facts
}
