package cli

import (
	"context"
	"fmt"
	"strings"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type eventsShowCmd struct {
	adminFlags
	jsonFlag
	ID     string `arg:"" name:"id" help:"Event ID."`
	Reveal bool   `help:"Show target, headers, body and the kept answer too. The server logs that somebody looked."`
}

// Help is shown under the command's usage.
func (eventsShowCmd) Help() string {
	return "Example:\n\n    postern events show evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11\n    postern events show --reveal --json evt_0197c2d4-8f3a-7cc0-9d0e-2b5a0f3c9a11"
}

// Run prints the event and its attempts.
func (c *eventsShowCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.Event(context.Background(), c.ID, c.Reveal)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	facts := s.eventFacts(reply.Value)
	if why := s.holds(context.Background(), admin, reply.Value); why != "" {
		facts = append(facts, fact{name: "held back", value: why, color: term.Warn})
	}
	if err := s.facts(facts); err != nil {
		return err
	}
	if err := s.attemptTable(reply.Value.Attempts); err != nil {
		return err
	}
	if c.Reveal {
		return s.revealed(reply.Value)
	}
	return nil
}

func (s *session) eventFacts(e client.Event) []fact {
	now := s.now()
	state := stateCell(e.State)
	facts := []fact{
		{name: "id", value: e.ID},
		{name: "endpoint", value: e.Endpoint},
		{name: "state", value: state.Text, color: state.Color},
		{name: "request", value: strings.TrimSpace(e.Method + " " + e.URL)},
		{name: "accepted", value: term.When(e.AcceptedAt, now)},
		{name: "size", value: term.Bytes(e.Size)},
	}
	if !e.NextAttemptAt.IsZero() {
		facts = append(facts, fact{name: "next attempt", value: nextAttempt(e, now)})
	}
	if !e.DeliveredAt.IsZero() {
		facts = append(facts, fact{name: "delivered", value: term.When(e.DeliveredAt, now), color: term.Good})
	}
	if e.DeadReason != "" {
		facts = append(facts, fact{name: "given up", value: term.When(e.DeadAt, now) + ", " + e.DeadReason, color: term.Bad})
	}
	return facts
}

func (s *session) attemptTable(attempts []client.Attempt) error {
	if len(attempts) == 0 {
		_, err := fmt.Fprintln(s.out, "\nNo attempt yet.")
		return err
	}
	fmt.Fprintln(s.out)
	table := term.NewTable(term.Column{Title: "ATTEMPT", Right: true}, term.Column{Title: "STARTED"},
		term.Column{Title: "TOOK", Right: true}, term.Column{Title: "STATUS", Right: true}, term.Column{Title: "ERROR"})
	for _, a := range attempts {
		status := "-"
		if a.StatusCode != 0 {
			status = fmt.Sprint(a.StatusCode)
		}
		result := term.Cell{Text: "delivered", Color: term.Good}
		if a.Error != "" {
			result = term.Cell{Text: a.Error, Color: term.Bad}
		}
		table.Row(term.Cell{Text: fmt.Sprint(a.Number)}, term.Cell{Text: term.When(a.StartedAt, s.now())},
			term.Cell{Text: term.Millis(a.DurationMs)}, term.Cell{Text: status}, result)
	}
	return table.Write(s.out)
}

// revealed prints what lists hide.
func (s *session) revealed(e client.Event) error {
	var b strings.Builder
	target := term.Clean(e.Target)
	if target == "" {
		target = "(the endpoint's url as it is configured, with nothing added)"
	}
	fmt.Fprintf(&b, "\ntarget: %s\n", target)
	for _, h := range e.Headers {
		fmt.Fprintf(&b, "%s: %s\n", term.Clean(h.Name), term.Clean(h.Value))
	}
	fmt.Fprintf(&b, "\n%s\n", s.bodyText(e.Body, e.BodyEncoding))
	if e.Answer != nil {
		fmt.Fprintf(&b, "\nthe receiver's last answer: %d\n", e.Answer.StatusCode)
		if e.Answer.Location != "" {
			fmt.Fprintf(&b, "Location: %s\n", term.Clean(e.Answer.Location))
		}
		fmt.Fprintf(&b, "%s\n", s.bodyText(e.Answer.Body, e.Answer.BodyEncoding))
	}
	_, err := s.out.Write([]byte(b.String()))
	return err
}

// bodyText says how a body is written where it is not plain text.
func (s *session) bodyText(body, encoding string) string {
	if encoding == "base64" {
		return "(base64) " + term.Clean(body)
	}
	return term.CleanText(body)
}
