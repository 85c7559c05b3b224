package cli

import (
	"context"
	"fmt"

	"postern/proxy/cli/term"
)

// endpointArg is what the three commands that change an endpoint take.
type endpointArg struct {
	adminFlags
	jsonFlag
	Name string `arg:"" help:"Endpoint: a configured name, or an origin such as https://partner.example."`
}

func (c *endpointArg) act(s *session, action, done string) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.ActOnEndpoint(context.Background(), c.Name, action)
	if err != nil {
		return meant(admin, c.Name, err)
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	_, err = fmt.Fprintf(s.out, "%s: %s\n", term.Clean(c.Name), done)
	return err
}

type endpointsPauseCmd struct{ endpointArg }

// Help is shown under the command's usage.
func (endpointsPauseCmd) Help() string {
	return "Ingest goes on accepting for it. A pause survives restarts.\n\nExample:\n\n    postern endpoints pause partner-a"
}

// Run pauses the endpoint.
func (c *endpointsPauseCmd) Run(s *session) error { return c.act(s, "pause", "paused") }

type endpointsResumeCmd struct{ endpointArg }

// Help is shown under the command's usage.
func (endpointsResumeCmd) Help() string {
	return "Example:\n\n    postern endpoints resume partner-a"
}

// Run resumes the endpoint.
func (c *endpointsResumeCmd) Run(s *session) error { return c.act(s, "resume", "resumed") }

type endpointsResetCmd struct{ endpointArg }

// Help is shown under the command's usage.
func (endpointsResetCmd) Help() string {
	return "The breaker closes and its cooldown starts over. Use it when the receiver is known to be well again.\n\nExample:\n\n    postern endpoints reset partner-a"
}

// Run resets the endpoint's breaker.
func (c *endpointsResetCmd) Run(s *session) error {
	return c.act(s, "reset", "reset, its breaker is closed")
}
