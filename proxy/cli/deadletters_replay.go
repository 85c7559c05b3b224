package cli

import (
	"context"
	"fmt"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type lettersReplayCmd struct {
	adminFlags
	jsonFlag
	letterFilter
	DryRun bool    `help:"Only count."`
	Rate   float64 `placeholder:"N" help:"At most N events a second; all at once unless given."`
}

// Help is shown under the command's usage.
func (lettersReplayCmd) Help() string {
	return "Replayed events keep their IDs, go on counting attempts, and start budget and TTL anew.\n\nExample:\n\n    postern dead-letters replay --endpoint partner-a --dry-run\n    postern dead-letters replay --endpoint partner-a --since 24h --rate 20"
}

// Run starts the replay and follows it to its end.
func (c *lettersReplayCmd) Run(s *session) error {
	if c.Rate < 0 {
		return usage("--rate must be above zero")
	}
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Replay(context.Background(), client.Bulk{LetterFilter: c.filter(), DryRun: c.DryRun, Rate: c.Rate})
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	if c.DryRun {
		_, err = fmt.Fprintf(s.out, "%s would be replayed.\n", term.Count(reply.Value.Matched, "dead letter"))
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s replayed.\n", term.Count(reply.Value.Replayed, "dead letter"))
	return err
}
