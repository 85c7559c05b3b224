package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type statusCmd struct {
	adminFlags
	jsonFlag
}

// Help is shown under the command's usage.
func (statusCmd) Help() string {
	return "Example:\n\n    postern status\n    postern status --json | jq .dead_letter"
}

// Run prints one line per fact.
func (c *statusCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Status(context.Background())
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	return s.facts(s.statusFacts(reply.Value))
}

// fact is one line of a description: its name and its value.
type fact struct {
	name  string
	value string
	color term.Color
}

func (s *session) statusFacts(st client.Status) []fact {
	facts := append(readyFacts(st), pipelineFacts(st.Pipeline, s.now())...)
	facts = append(facts, fact{name: "spool", value: spoolSize(st)}, readSync(st.Sync).fact(s.now()))
	if st.InstanceID != "" {
		facts = append(facts, fact{name: "instance", value: st.InstanceID})
	}
	if st.Version != "" {
		facts = append(facts, fact{name: "version", value: st.Version})
	}
	return facts
}

// spoolSize is what the spool's files take, and what they may; an older Postern does not tell the latter.
func spoolSize(st client.Status) string {
	if st.SpoolMaxBytes == 0 {
		return term.Bytes(st.SpoolBytes)
	}
	return term.Bytes(st.SpoolBytes) + " of " + term.Bytes(st.SpoolMaxBytes)
}

// readyFacts say whether Postern takes what is handed to it; and if not, why, a line each.
func readyFacts(st client.Status) []fact {
	if st.Ready {
		return []fact{{name: "ready", value: "yes", color: term.Good}}
	}
	facts := []fact{{name: "ready", value: "NO", color: term.Bad}}
	for _, reason := range st.Reasons {
		facts = append(facts, fact{value: reason, color: term.Bad})
	}
	return facts
}

// pipelineFacts are the counts of one instance or of the fleet. Spools are named by the caller: one or all of them.
func pipelineFacts(p client.Pipeline, now time.Time) []fact {
	oldest, average := "-", "-"
	if p.OldestPending != nil {
		oldest = term.When(*p.OldestPending, now)
	}
	if p.AvgDeliveryMS != nil {
		average = term.Millis(*p.AvgDeliveryMS)
	}
	return []fact{
		{name: "pending", value: fmt.Sprint(p.Pending)},
		{name: "awaiting retry", value: fmt.Sprint(p.AwaitingRetry), color: some(p.AwaitingRetry, term.Warn)},
		{name: inFlight, value: fmt.Sprint(p.InFlight)},
		{name: "dead letters", value: fmt.Sprint(p.DeadLetter), color: some(p.DeadLetter, term.Bad)},
		{name: "delivered, last hour", value: fmt.Sprint(p.DeliveredLastHour)},
		{name: "failed attempts, last hour", value: fmt.Sprint(p.FailedLastHour)},
		{name: "oldest pending", value: oldest},
		{name: "average delivery, last hour", value: average},
	}
}

// inFlight is the one count that the fleet does not know of an endpoint by itself.
const inFlight = "in flight"

// some colours a count that is not zero.
func some(n int64, c term.Color) term.Color {
	if n > 0 {
		return c
	}
	return term.Plain
}

// facts prints names and values in two columns.
func (s *session) facts(facts []fact) error {
	width := 0
	for _, f := range facts {
		width = max(width, len(f.name))
	}
	var b strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&b, "%-*s  %s\n", width, f.name, s.out.Paint(f.color, term.Clean(f.value)))
	}
	_, err := s.out.Write([]byte(b.String()))
	return err
}
