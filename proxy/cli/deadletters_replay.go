package cli

import (
	"context"
	"fmt"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type lettersReplayCmd struct {
	adminFlags
	jsonFlag
	bulkFlags
	Rate   string `placeholder:"N" help:"At most this many a second (2.5), or in a window (100/1m); all at once unless given."`
	Detach bool   `help:"With --rate: do not wait for the end."`
}

// Help is shown under the command's usage.
func (lettersReplayCmd) Help() string {
	return "Replayed events keep their IDs, go on counting attempts, and start budget and TTL anew. Ctrl-C stops a paced replay; what it has not replayed stays a dead letter.\n\nExample:\n\n    postern dead-letters replay --endpoint partner-a --dry-run\n    postern dead-letters replay --endpoint partner-a --since 24h --rate 20"
}

// Validate is called by kong.
func (c *lettersReplayCmd) Validate() error { return c.check("replay") }

// Run starts the replay and follows it to its end.
func (c *lettersReplayCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, stop := untilSignal(context.Background())
	defer stop()
	reply, err := admin.Replay(ctx, client.Bulk{LetterFilter: c.filter(), DryRun: c.DryRun, Rate: c.Rate})
	if err != nil {
		return err
	}
	result := reply.Value
	if result.Matched == 0 {
		if err := mistyped(ctx, admin, given(c.Endpoint)); err != nil {
			return err
		}
	}
	switch {
	case result.Started && !c.Detach:
		return c.follow(ctx, s, admin, result.ID)
	case c.JSON:
		return s.printJSON(reply.Raw)
	case result.Started:
		_, err = fmt.Fprintf(s.out, "%s: started for %s.\n", result.ID, term.Count(result.Matched, "dead letter"))
	case c.DryRun:
		_, err = fmt.Fprintf(s.out, "%s would be replayed.\n", term.Count(result.Matched, "dead letter"))
	default:
		_, err = fmt.Fprintf(s.out, "%s replayed.\n", term.Count(result.Replayed, "dead letter"))
	}
	return err
}

// pollEvery is how often a paced replay is asked how far it is.
const pollEvery = 200 * time.Millisecond

// follow shows a paced replay's progress until it has ended, and stops it when the person does not want to wait.
func (c *lettersReplayCmd) follow(ctx context.Context, s *session, admin *client.Admin, id string) error {
	bar := term.NewProgress(s.err, "replayed")
	defer bar.Close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	stopped := ctx.Done()
	for {
		reply, err := admin.ReplayProgress(context.WithoutCancel(ctx), id)
		if err != nil {
			return err
		}
		bar.Set(reply.Value.Replayed+reply.Value.Skipped, reply.Value.Matched)
		if reply.Value.State != "running" {
			bar.Close()
			return c.ended(s, reply)
		}
		select {
		case <-tick.C:
		case <-stopped:
			stopped = nil // once: the next round sees what became of it
			if _, err := admin.StopReplay(context.WithoutCancel(ctx), id); err != nil {
				return err
			}
		}
	}
}

// ended says what became of a paced replay. Anything but its end is a failure.
func (c *lettersReplayCmd) ended(s *session, reply client.Reply[client.PacedReplay]) error {
	r := reply.Value
	if c.JSON {
		if err := s.printJSON(reply.Raw); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.out, "%d of %s replayed.\n", r.Replayed, term.Count(r.Matched, "dead letter"))
	}
	switch {
	case r.State == "done":
		return nil
	case r.Error != "":
		return fmt.Errorf("the replay %s: %s", term.Clean(r.State), term.Clean(r.Error))
	}
	return fmt.Errorf("the replay was %s before its end; what it did not reach stays a dead letter", term.Clean(r.State))
}
