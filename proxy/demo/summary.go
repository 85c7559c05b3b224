package demo

import (
	"context"
	"errors"
	"fmt"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// summary says what happened, and proves or disproves that nothing was lost.
func (s *show) summary(ctx context.Context) error {
	attempts, err := s.attempts(ctx)
	if err != nil {
		return err
	}
	analysis, err := s.running.admin.Analysis(ctx, 1)
	if err != nil {
		return err
	}
	endpoints, err := s.running.admin.Endpoints(ctx)
	if err != nil {
		return err
	}
	ids := s.ids()
	requests, delivered := s.receivers.sum()
	var dead int64
	for _, a := range analysis.Value.Endpoints {
		dead += a.DeadCount
	}
	fmt.Fprintf(s.out, "\naccepted %d, delivered %d, attempts %d (retries %d), requests seen by the receivers %d, dead letters %d\n",
		len(ids), delivered, attempts, attempts-len(ids), requests, dead)
	s.findings(analysis.Value.Endpoints)
	if err := s.latencies(endpoints.Value.Endpoints); err != nil {
		return err
	}
	return s.proof(ids)
}

// attempts sums up the attempts that Postern recorded, page by page.
func (s *show) attempts(ctx context.Context) (int, error) {
	total, filter := 0, client.EventFilter{Limit: 1000}
	for {
		page, err := s.running.admin.Events(ctx, filter)
		if err != nil {
			return 0, err
		}
		for _, e := range page.Value.Events {
			total += e.AttemptCount
		}
		if page.Value.Next == "" {
			return total, nil
		}
		filter.Cursor = page.Value.Next
	}
}

func (s *show) findings(all []client.Analysis) {
	for _, a := range all {
		fmt.Fprintf(s.out, "  %s: %s, most often %s\n", term.Clean(a.Endpoint), term.Count(a.DeadCount, "dead letter"), term.Clean(a.PrimaryError))
		for _, f := range a.Findings {
			fmt.Fprintf(s.out, "    %s: %s %s\n", term.Clean(f.Pattern), term.Clean(f.Message), term.Clean(f.Action))
		}
	}
}

func (s *show) latencies(endpoints []client.Endpoint) error {
	fmt.Fprintln(s.out)
	table := term.NewTable(term.Column{Title: "ENDPOINT"}, term.Column{Title: "P50", Right: true}, term.Column{Title: "P95", Right: true},
		term.Column{Title: "P99", Right: true}, term.Column{Title: "SAMPLES", Right: true})
	for _, e := range endpoints {
		table.Row(term.Cell{Text: e.Name}, latency(e.P50Ms), latency(e.P95Ms), latency(e.P99Ms), number(int(e.SampleCount)))
	}
	return table.Write(s.out)
}

func latency(ms *float64) term.Cell {
	if ms == nil {
		return term.Cell{Text: "-"}
	}
	return term.Cell{Text: term.Millis(*ms)}
}

// proof compares the accepted event IDs with those that the receivers took or, where that is their role, refused.
func (s *show) proof(ids []string) error {
	if len(s.refused) > 0 {
		return fmt.Errorf("%d postbacks were not accepted, the first because: %w", len(s.refused), s.refused[0])
	}
	missing := s.receivers.unseen(ids)
	if len(missing) > 0 {
		return fmt.Errorf("the receivers did not see %d of %d accepted events, %s among them", len(missing), len(ids), missing[0])
	}
	if len(ids) != s.script.total() {
		return errors.New("not every postback of the script was posted")
	}
	proof := fmt.Sprintf("Proof: the receivers saw %d of %d accepted event IDs.", len(ids), len(ids))
	_, err := fmt.Fprintf(s.out, "\n%s\n", s.out.Paint(term.Good, proof))
	return err
}
