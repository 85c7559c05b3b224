package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type lettersPurgeCmd struct {
	adminFlags
	jsonFlag
	letterFilter
	DryRun bool `help:"Only count."`
	Yes    bool `short:"y" help:"Do not ask. Needed where nobody sits at a terminal."`
}

// Help is shown under the command's usage.
func (lettersPurgeCmd) Help() string {
	return "Example:\n\n    postern dead-letters purge --endpoint partner-a --until 720h --dry-run\n    postern dead-letters purge --endpoint partner-a --until 720h --yes"
}

// Run counts, asks, and drops.
func (c *lettersPurgeCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	bulk := client.Bulk{LetterFilter: c.filter(), DryRun: c.DryRun}
	if !c.DryRun && !c.Yes {
		if err := s.confirmPurge(admin, bulk); err != nil {
			return err
		}
	}
	reply, err := admin.Purge(context.Background(), bulk)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	if c.DryRun {
		_, err = fmt.Fprintf(s.out, "%s would be purged.\n", term.Count(reply.Value.Matched, "dead letter"))
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s purged.\n", term.Count(reply.Value.Purged, "dead letter"))
	return err
}

// confirmPurge asks the person, with the number; where there is no person --yes is the answer.
func (s *session) confirmPurge(admin *client.Admin, bulk client.Bulk) error {
	if !term.IsTerminal(s.Stdin) {
		return usage("purging cannot be undone: add --yes, or look first with --dry-run")
	}
	bulk.DryRun = true
	count, err := admin.Purge(context.Background(), bulk)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "Drop %s for good? [y/N] ", term.Count(count.Value.Matched, "dead letter"))
	if !yes(s.Stdin) {
		fmt.Fprintln(s.err, "Nothing was purged.")
		return errFailed
	}
	return nil
}

// yes reads one line; anything but y or yes, the end of input included, is a no.
func yes(in io.Reader) bool {
	line, _ := bufio.NewReader(in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
