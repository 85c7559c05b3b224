package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
	"postern/proxy/fleet"
)

type fleetStatusCmd struct{ fleetFlags }

// Help is shown under the command's usage.
func (fleetStatusCmd) Help() string {
	return "Counts are of this moment and of the last hour; --since is for the instances: those last heard of before it are left out. Events in flight are reported per instance: with --endpoint they count as pending, or as awaiting their retry.\n\nExample:\n\n    postern fleet status\n    postern fleet status --endpoint partner-a --json | jq .dead_letter"
}

// Run prints what all instances have reported, then one line per instance.
func (c *fleetStatusCmd) Run(s *session) error {
	return c.ask(s, func(ctx context.Context, f *fleet.Fleet, _ central) error {
		st, err := f.Status(ctx, c.Endpoint, c.Since.duration())
		if err != nil {
			return err
		}
		if c.JSON {
			return s.encode(st)
		}
		if err := s.facts(s.fleetFacts(st, c.Endpoint)); err != nil || len(st.Instances) == 0 {
			return err
		}
		fmt.Fprintln(s.out)
		return s.instanceTable(st)
	})
}

func (s *session) fleetFacts(st fleet.Status, endpoint string) []fact {
	facts := pipelineFacts(client.Pipeline(st.Pipeline), st.Now)
	if endpoint != "" {
		facts = slices.DeleteFunc(facts, func(f fact) bool { return f.name == inFlight })
		return append([]fact{{name: "endpoint", value: endpoint}}, facts...)
	}
	backlog := "nothing"
	if st.Sync.BacklogRows > 0 {
		backlog = fmt.Sprintf("%s, the oldest for %s", term.Count(st.Sync.BacklogRows, "row"), term.Age(seconds(st.Sync.LagSeconds)))
	}
	live := fact{name: "instances alive", value: fmt.Sprint(st.Sync.Instances), color: term.Good}
	if st.Sync.Instances == 0 {
		live.color = term.Bad
	}
	return append(facts,
		fact{name: "spools", value: term.Bytes(st.SpoolBytes)}, live,
		fact{name: "not yet reported", value: backlog},
		fact{name: "refused by Postgres", value: term.Count(st.Sync.RejectedRows, "row"), color: some(st.Sync.RejectedRows, term.Warn)})
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (s *session) instanceTable(st fleet.Status) error {
	table := term.NewTable(term.Column{Title: "INSTANCE"}, term.Column{Title: "STATE"}, term.Column{Title: "HEARTBEAT", Cut: true},
		term.Column{Title: "BACKLOG", Right: true}, term.Column{Title: "VERSION", Cut: true}, term.Column{Title: "LABELS", Cut: true})
	for _, i := range st.Instances {
		state := term.Cell{Text: "alive", Color: term.Good}
		switch {
		case i.StoppedAt != nil:
			state = term.Cell{Text: "stopped", Color: term.Faint}
		case !i.Live:
			state = term.Cell{Text: "silent", Color: term.Bad}
		}
		table.Row(term.Cell{Text: i.ID}, state, term.Cell{Text: term.When(i.HeartbeatAt, st.Now)}, term.Cell{Text: fmt.Sprint(i.BacklogRows)},
			term.Cell{Text: dash(i.Version)}, term.Cell{Text: dash(labelText(i.Labels))})
	}
	return table.Write(s.out)
}

// labelText writes labels as Prometheus people know them, in a stable order.
func labelText(raw json.RawMessage) string {
	var labels map[string]string
	if json.Unmarshal(raw, &labels) != nil {
		return ""
	}
	var pairs []string
	for k, v := range labels {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}
