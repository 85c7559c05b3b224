package demo

import (
	"context"
	"errors"
	"fmt"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// Summary is what a demo came to.
type Summary struct {
	Proven      bool `json:"proven"` // every postback was accepted, and the receivers saw every accepted event
	Accepted    int  `json:"accepted"`
	Delivered   int  `json:"delivered"`
	Attempts    int  `json:"attempts"`
	Retries     int  `json:"retries"`
	Requests    int  `json:"requests"` // that the receivers saw
	DeadLetters int  `json:"dead_letters"`
	// Unseen are the accepted events that no receiver took or, where that is its role, refused.
	Unseen    []string          `json:"unseen"`
	Endpoints []Latency         `json:"endpoints"`
	Analysis  []client.Analysis `json:"dead_letter_analysis"`
}

// Latency is how long an endpoint took, in milliseconds; nil where there is no sample.
type Latency struct {
	Name    string   `json:"name"`
	P50     *float64 `json:"p50_ms"`
	P95     *float64 `json:"p95_ms"`
	P99     *float64 `json:"p99_ms"`
	Samples int64    `json:"sample_count"`
}

// summary says what happened, and proves or disproves that nothing was lost.
func (s *show) summary(ctx context.Context) error {
	sum, err := s.sumUp(ctx)
	if err != nil {
		return err
	}
	lost := s.lost(sum)
	sum.Proven = lost == nil
	if s.result != nil {
		return errors.Join(lost, s.result(sum))
	}
	fmt.Fprintf(s.out, "\naccepted %d, delivered %d, attempts %d (retries %d), requests seen by the receivers %d, dead letters %d\n",
		sum.Accepted, sum.Delivered, sum.Attempts, sum.Retries, sum.Requests, sum.DeadLetters)
	s.findings(sum.Analysis)
	if err := s.latencies(sum.Endpoints); err != nil || lost != nil {
		return errors.Join(lost, err)
	}
	proof := fmt.Sprintf("Proof: the receivers saw %d of %d accepted event IDs.", sum.Accepted, sum.Accepted)
	_, err = fmt.Fprintf(s.out, "\n%s\n", s.out.Paint(term.Good, proof))
	return err
}

// sumUp asks the running Postern, and the receivers.
func (s *show) sumUp(ctx context.Context) (Summary, error) {
	attempts, err := s.attempts(ctx)
	if err != nil {
		return Summary{}, err
	}
	analysis, err := s.running.admin.Analysis(ctx, 1)
	if err != nil {
		return Summary{}, err
	}
	endpoints, err := s.running.admin.Endpoints(ctx)
	if err != nil {
		return Summary{}, err
	}
	ids := s.ids()
	sum := Summary{
		Accepted: len(ids), Attempts: attempts, Retries: attempts - len(ids), Unseen: s.receivers.unseen(ids),
		Endpoints: []Latency{}, Analysis: append([]client.Analysis{}, analysis.Value.Endpoints...),
	}
	sum.Requests, sum.Delivered = s.receivers.sum()
	for _, a := range sum.Analysis {
		sum.DeadLetters += int(a.DeadCount)
	}
	for _, e := range endpoints.Value.Endpoints {
		sum.Endpoints = append(sum.Endpoints, Latency{e.Name, e.P50Ms, e.P95Ms, e.P99Ms, e.SampleCount})
	}
	return sum, nil
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

func (s *show) latencies(endpoints []Latency) error {
	fmt.Fprintln(s.out)
	table := term.NewTable(term.Column{Title: "ENDPOINT"}, term.Column{Title: "P50", Right: true}, term.Column{Title: "P95", Right: true},
		term.Column{Title: "P99", Right: true}, term.Column{Title: "SAMPLES", Right: true})
	for _, e := range endpoints {
		table.Row(term.Cell{Text: e.Name}, latency(e.P50), latency(e.P95), latency(e.P99), number(int(e.Samples)))
	}
	return table.Write(s.out)
}

func latency(ms *float64) term.Cell {
	if ms == nil {
		return term.Cell{Text: "-"}
	}
	return term.Cell{Text: term.Millis(*ms)}
}

// lost tells what keeps the proof from being one.
func (s *show) lost(sum Summary) error {
	switch {
	case len(s.refused) > 0:
		return fmt.Errorf("%d postbacks were not accepted, the first because: %w", len(s.refused), s.refused[0])
	case len(sum.Unseen) > 0:
		return fmt.Errorf("the receivers did not see %d of %d accepted events, %s among them", len(sum.Unseen), sum.Accepted, sum.Unseen[0])
	case sum.Accepted != s.script.total():
		return errors.New("not every postback of the script was posted")
	}
	return nil
}
