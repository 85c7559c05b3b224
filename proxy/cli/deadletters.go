package cli

import (
	"context"
	"fmt"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type deadLettersCmd struct {
	List    lettersListCmd    `cmd:"" default:"withargs" help:"List dead letters (what happens when no subcommand is given)."`
	Show    lettersShowCmd    `cmd:"" help:"Show one dead letter with its attempts."`
	Analyze lettersAnalyzeCmd `cmd:"" help:"Say per endpoint why events died, and what to do about it."`
	Replay  lettersReplayCmd  `cmd:"" help:"Send dead letters again."`
	Purge   lettersPurgeCmd   `cmd:"" help:"Drop dead letters for good."`
}

// Help is shown under the command's usage.
func (deadLettersCmd) Help() string {
	return "Example:\n\n    postern dead-letters analyze\n    postern dead-letters replay --endpoint partner-a --rate 20"
}

type lettersListCmd struct {
	adminFlags
	jsonFlag
	letterFilter
	Limit  int    `placeholder:"N" default:"50" help:"At most N of them (1 to 1000)."`
	Cursor string `placeholder:"CURSOR" help:"Where an earlier page ended."`
}

// Help is shown under the command's usage.
func (lettersListCmd) Help() string {
	return "Example:\n\n    postern dead-letters list --endpoint partner-a --since 24h\n    postern dead-letters --status 401 --json"
}

// Validate is called by kong.
func (c *lettersListCmd) Validate() error {
	if err := c.letterFilter.check(); err != nil {
		return err
	}
	return checkLimit(c.Limit)
}

// Run prints one page of dead letters.
func (c *lettersListCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.DeadLetters(context.Background(), c.filter(), c.Limit, c.Cursor)
	if err != nil {
		return err
	}
	s.noteUnknown(admin, given(c.Endpoint), len(reply.Value.DeadLetters))
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	if err := s.letterTable(reply.Value.DeadLetters); err != nil {
		return err
	}
	return s.more(reply.Value.Next)
}

func (s *session) letterTable(letters []client.Event) error {
	if len(letters) == 0 {
		_, err := fmt.Fprintln(s.out, "No dead letters.")
		return err
	}
	table := term.NewTable(term.Column{Title: "ID"}, term.Column{Title: "ENDPOINT", Cut: true}, term.Column{Title: "REASON"},
		term.Column{Title: "LAST ERROR", Cut: true}, term.Column{Title: "TRIES", Right: true}, term.Column{Title: "DIED", Cut: true})
	for _, e := range letters {
		table.Row(term.Cell{Text: e.ID}, term.Cell{Text: e.Endpoint}, term.Cell{Text: dash(e.DeadReason), Color: term.Bad},
			term.Cell{Text: dash(e.LastError)}, term.Cell{Text: fmt.Sprint(e.AttemptCount)}, term.Cell{Text: term.When(e.DeadAt, s.now())})
	}
	return table.Write(s.out)
}

type lettersShowCmd struct{ eventsShowCmd }

// Help is shown under the command's usage.
func (lettersShowCmd) Help() string {
	return "Example:\n\n    postern dead-letters show evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11\n    postern dead-letters show --reveal --json evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11"
}

type lettersAnalyzeCmd struct {
	adminFlags
	jsonFlag
	Hours int `default:"24" placeholder:"N" help:"Look back N hours."`
}

// Help is shown under the command's usage.
func (lettersAnalyzeCmd) Help() string {
	return "Example:\n\n    postern dead-letters analyze --hours 72"
}

// Run prints one line per endpoint, then what was found with what to do.
func (c *lettersAnalyzeCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Analysis(context.Background(), c.Hours)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	if len(reply.Value.Endpoints) == 0 {
		_, err := fmt.Fprintf(s.out, "No dead letters in the last %s.\n", term.Count(int64(c.Hours), "hour"))
		return err
	}
	return s.analysis(reply.Value.Endpoints)
}

func (s *session) analysis(all []client.Analysis) error {
	table := term.NewTable(term.Column{Title: "ENDPOINT"}, term.Column{Title: "DEAD", Right: true}, term.Column{Title: "MOST OFTEN"},
		term.Column{Title: "STATUS", Right: true}, term.Column{Title: "AVG TRIES", Right: true},
		term.Column{Title: "FIRST", Cut: true}, term.Column{Title: "LAST", Cut: true})
	for _, a := range all {
		status := "-"
		if a.PrimaryStatusCode != 0 {
			status = fmt.Sprint(a.PrimaryStatusCode)
		}
		table.Row(term.Cell{Text: a.Endpoint}, term.Cell{Text: fmt.Sprint(a.DeadCount), Color: term.Bad}, term.Cell{Text: dash(a.PrimaryError)},
			term.Cell{Text: status}, term.Cell{Text: fmt.Sprintf("%.1f", a.AvgAttempts)},
			term.Cell{Text: term.When(a.FirstDead, s.now())}, term.Cell{Text: term.When(a.LastDead, s.now())})
	}
	if err := table.Write(s.out); err != nil {
		return err
	}
	for _, a := range all {
		if len(a.Findings) == 0 {
			fmt.Fprintf(s.out, "\n%s: mostly %s\n  -> %s\n", term.Clean(a.Endpoint), s.out.Paint(term.Strong, term.Clean(dash(a.PrimaryError))), term.Clean(advice(a)))
		}
		for _, f := range a.Findings {
			fmt.Fprintf(s.out, "\n%s: %s\n  %s\n  -> %s\n", term.Clean(a.Endpoint), s.out.Paint(term.Strong, term.Clean(f.Pattern)),
				term.Clean(f.Message), term.Clean(f.Action))
		}
	}
	return nil
}
