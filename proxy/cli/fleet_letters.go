package cli

import (
	"context"
	"fmt"

	"postern/proxy/client"
	"postern/proxy/fleet"
)

type fleetLettersCmd struct{ fleetFlags }

// Help is shown under the command's usage.
func (fleetLettersCmd) Help() string {
	return "Replaying is each instance's own business: run `postern dead-letters replay` where the events are.\n\nExample:\n\n    postern fleet dead-letters\n    postern fleet dead-letters --endpoint partner-a --since 7d"
}

// Run prints one line per endpoint, then what was found with what to do.
func (c *fleetLettersCmd) Run(s *session) error {
	return c.ask(s, func(ctx context.Context, f *fleet.Fleet, _ central) error {
		letters, err := f.DeadLetters(ctx, c.Endpoint, c.Since.duration())
		if err != nil {
			return err
		}
		if c.JSON {
			return s.encode(letters)
		}
		if len(letters.Endpoints) == 0 {
			_, err := fmt.Fprintf(s.out, "No dead letters in the last %s.\n", c.Since)
			return err
		}
		return s.analysis(analyses(letters.Endpoints))
	})
}

// analyses are the fleet's in the form in which one instance's are shown. A name that means several URLs is shown with
// each of them.
func analyses(list []fleet.Analysis) (out []client.Analysis) {
	urls := make(map[string]int)
	for _, a := range list {
		urls[a.Endpoint]++
	}
	for _, a := range list {
		name := a.Endpoint
		if urls[name] > 1 {
			name += " (" + a.EndpointURL + ")"
		}
		one := client.Analysis{
			Endpoint: name, DeadCount: int64(a.DeadCount), PrimaryError: a.PrimaryError, FirstDead: a.FirstDead, LastDead: a.LastDead,
			AvgAttempts: a.AvgAttempts,
		}
		if a.PrimaryStatusCode != nil {
			one.PrimaryStatusCode = *a.PrimaryStatusCode
		}
		for _, f := range a.Findings {
			one.Findings = append(one.Findings, client.Finding{Pattern: string(f.Pattern), Count: int64(f.Count), Message: f.Message, Action: f.Action})
		}
		out = append(out, one)
	}
	return out
}
