package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type eventsCmd struct {
	List   eventsListCmd   `cmd:"" default:"withargs" help:"List events, newest first (what happens when no subcommand is given)."`
	Show   eventsShowCmd   `cmd:"" help:"Show one event with its attempts."`
	Retry  eventsRetryCmd  `cmd:"" help:"Make events due now, with a new budget of attempts."`
	Delete eventsDeleteCmd `cmd:"" help:"Drop events for good."`
}

// Help is shown under the command's usage.
func (eventsCmd) Help() string {
	return "Example:\n\n    postern events --state failed\n    postern events show evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11"
}

type eventsListCmd struct {
	adminFlags
	jsonFlag
	State    string `placeholder:"STATE" help:"Only this state: pending, in_flight, failed, delivered or dead_letter."`
	Endpoint string `placeholder:"NAME" help:"Only this endpoint: a configured name or an origin."`
	Limit    int    `placeholder:"N" default:"50" help:"At most N events (1 to 1000)."`
	Cursor   string `placeholder:"CURSOR" help:"Where an earlier page ended."`
}

// Help is shown under the command's usage.
func (eventsListCmd) Help() string {
	return "Example:\n\n    postern events --state failed --endpoint partner-a\n    postern events list --json --limit 1000"
}

// states are the words that --state takes.
var states = []string{"pending", "in_flight", "failed", "delivered", "dead_letter"}

// Validate is called by kong.
func (c *eventsListCmd) Validate() error {
	if c.State != "" && !slices.Contains(states, c.State) {
		return fmt.Errorf("--state must be one of %s", strings.Join(states, ", "))
	}
	return checkLimit(c.Limit)
}

func checkLimit(n int) error {
	if n < 1 || n > 1000 {
		return errors.New("--limit must be from 1 to 1000")
	}
	return nil
}

// Run prints one page of events.
func (c *eventsListCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Events(context.Background(), client.EventFilter{State: c.State, Endpoint: c.Endpoint, Limit: c.Limit, Cursor: c.Cursor})
	if err != nil {
		return err
	}
	s.noteUnknown(admin, c.Endpoint, len(reply.Value.Events))
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	if err := s.eventTable(reply.Value.Events); err != nil {
		return err
	}
	return s.more(reply.Value.Next)
}

// more says on standard error that there is another page, so that a pipe gets rows alone.
func (s *session) more(cursor string) error {
	if cursor == "" {
		return nil
	}
	_, err := fmt.Fprintf(s.err, "There are more: repeat the command with --cursor %s\n", term.Clean(cursor))
	return err
}

func (s *session) eventTable(events []client.Event) error {
	if len(events) == 0 {
		_, err := fmt.Fprintln(s.out, "No events.")
		return err
	}
	now := s.now()
	table := term.NewTable(term.Column{Title: "ID"}, term.Column{Title: "ENDPOINT", Cut: true}, term.Column{Title: "STATE"},
		term.Column{Title: "TRIES", Right: true}, term.Column{Title: "LAST ERROR", Cut: true},
		term.Column{Title: "ACCEPTED", Cut: true}, term.Column{Title: "NEXT ATTEMPT", Cut: true})
	for _, e := range events {
		table.Row(term.Cell{Text: e.ID}, term.Cell{Text: e.Endpoint}, stateCell(e.State), term.Cell{Text: fmt.Sprint(e.AttemptCount)},
			term.Cell{Text: dash(e.LastError)}, term.Cell{Text: term.When(e.AcceptedAt, now)}, term.Cell{Text: nextAttempt(e, now)})
	}
	return table.Write(s.out)
}

func stateCell(state string) term.Cell {
	colors := map[string]term.Color{"delivered": term.Good, "failed": term.Warn, "dead_letter": term.Bad}
	return term.Cell{Text: state, Color: colors[state]}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type eventsRetryCmd struct {
	adminFlags
	IDs []string `arg:"" name:"id" help:"Event IDs."`
}

// Help is shown under the command's usage.
func (eventsRetryCmd) Help() string {
	return "The event keeps its ID and goes on counting attempts.\n\nExample:\n\n    postern events retry evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11"
}

// Run makes each event due now.
func (c *eventsRetryCmd) Run(s *session) error {
	return s.eachEvent(c.adminFlags, c.IDs, "due now", func(ctx context.Context, a *client.Admin, id string) error {
		_, err := a.RetryEvent(ctx, id)
		return err
	})
}

type eventsDeleteCmd struct {
	adminFlags
	IDs []string `arg:"" name:"id" help:"Event IDs."`
}

// Help is shown under the command's usage.
func (eventsDeleteCmd) Help() string {
	return "A dropped event is not delivered any more and cannot be brought back.\n\nExample:\n\n    postern events delete evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11"
}

// Run drops each event.
func (c *eventsDeleteCmd) Run(s *session) error {
	return s.eachEvent(c.adminFlags, c.IDs, "deleted", func(ctx context.Context, a *client.Admin, id string) error {
		_, err := a.DeleteEvent(ctx, id)
		return err
	})
}

// eachEvent does one thing to every event named. A refusal for one does not keep the others from their turn; nobody
// answering ends it.
func (s *session) eachEvent(flags adminFlags, ids []string, done string, do func(context.Context, *client.Admin, string) error) error {
	admin, err := flags.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	var failed error
	for _, id := range ids {
		switch err := do(context.Background(), admin, id); {
		case err == nil:
			fmt.Fprintf(s.out, "%s: %s\n", term.Clean(id), done)
		default:
			if _, refused := errors.AsType[*client.RefusedError](err); !refused {
				return err
			}
			failed = errors.Join(failed, fmt.Errorf("%s: %w", term.Clean(id), err))
		}
	}
	return failed
}
