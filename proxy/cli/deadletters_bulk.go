package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type lettersPurgeCmd struct {
	adminFlags
	jsonFlag
	bulkFlags
	Yes bool `short:"y" help:"Do not ask. Needed where nobody sits at a terminal."`
}

// Help is shown under the command's usage.
func (lettersPurgeCmd) Help() string {
	return "Example:\n\n    postern dead-letters purge --endpoint partner-a --until 720h --dry-run\n    postern dead-letters purge --endpoint partner-a --until 720h --yes"
}

// Validate is called by kong.
func (c *lettersPurgeCmd) Validate() error { return c.check("purge") }

// Run counts, asks, and drops what was counted.
func (c *lettersPurgeCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	bulk := client.Bulk{LetterFilter: c.filter(), DryRun: c.DryRun}
	if !c.DryRun && !c.Yes {
		if bulk, err = s.confirmPurge(admin, bulk); err != nil {
			return err
		}
	}
	reply, err := admin.Purge(context.Background(), bulk)
	if err != nil {
		return err
	}
	if reply.Value.Matched == 0 {
		if err := mistyped(context.Background(), admin, bulk.Endpoint); err != nil {
			return err
		}
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

// confirmPurge asks the person, with the number; where there is no person --yes is the answer. It returns what selects
// those that were counted: others may die while the person thinks, and "24h ago" moves on.
func (s *session) confirmPurge(admin *client.Admin, bulk client.Bulk) (client.Bulk, error) {
	if !term.IsTerminal(s.Stdin) {
		return bulk, usage("purging cannot be undone: add --yes, or look first with --dry-run")
	}
	return s.askToPurge(admin, bulk)
}

func (s *session) askToPurge(admin *client.Admin, bulk client.Bulk) (client.Bulk, error) {
	began := s.now().UTC().Format(time.RFC3339Nano)
	bulk.DryRun = true
	reply, err := admin.Purge(context.Background(), bulk)
	if err != nil {
		return bulk, err
	}
	counted := reply.Value
	if counted.Matched == 0 {
		if err := mistyped(context.Background(), admin, bulk.Endpoint); err != nil {
			return bulk, err
		}
	}
	fmt.Fprintf(s.err, "Drop %s for good? [y/N] ", term.Count(counted.Matched, "dead letter"))
	if !yes(s.Stdin) {
		fmt.Fprintln(s.err, "Nothing was purged.")
		return bulk, errFailed
	}
	bulk.DryRun = false
	bulk.Since, bulk.Until = cmp.Or(counted.Since, bulk.Since), cmp.Or(counted.Until, bulk.Until, began)
	return bulk, nil
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
