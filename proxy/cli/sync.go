package cli

import (
	"context"
	"fmt"

	"postern/proxy/cli/term"
	"postern/proxy/client"
	"postern/sync/pgstore"
)

type syncCmd struct {
	Migrate syncMigrateCmd `cmd:"" help:"Bring the schema in Postgres to this version's state."`
	Retry   syncRetryCmd   `cmd:"" help:"Send the rows that Postgres refused again."`
	Refused syncRefusedCmd `cmd:"" help:"List the rows that Postgres refused, with what it said."`
}

// Help is shown under the command's usage.
func (syncCmd) Help() string {
	return "Example:\n\n    postern sync migrate --config postern.yaml\n    postern sync refused\n    postern sync retry"
}

type syncMigrateCmd struct {
	storeFlags
	Down  *int `placeholder:"N" help:"Take the last N migrations back instead, with everything that is stored in what they made."`
	Print bool `help:"Change nothing; print the SQL as a script for psql. Without a Postgres: from nothing."`
}

// Help is shown under the command's usage.
func (syncMigrateCmd) Help() string {
	return "Every Postern does this by itself when it starts, if its role may. Run it with the schema's owner where that role may not, once per upgrade, before the first new instance. Before --down stop the instances: one that starts makes everything again.\n\nExample:\n\n    postern sync migrate --dsn postgres://owner@db.example/postern\n    postern sync migrate --print | psql service=postern"
}

// Validate is called by kong.
func (c *syncMigrateCmd) Validate() error {
	if c.Down != nil && *c.Down < 1 {
		return fmt.Errorf("--down must be at least 1")
	}
	return nil
}

// Run changes the schema, or prints how it would be changed.
func (c *syncMigrateCmd) Run(s *session) error {
	cfg, err := c.configuration(s)
	if err != nil {
		return err
	}
	where := c.where(cfg)
	ctx := context.Background()
	if c.Print && where.DSN == "" {
		return c.print(s, where.Schema, pgstore.Applied{Version: c.from()})
	}
	store, err := c.open(where)
	if err != nil {
		return err
	}
	defer store.Close()
	before, err := store.Applied(ctx)
	switch {
	case err != nil:
		return err
	case c.Print:
		return c.print(s, where.Schema, before)
	case c.Down != nil:
		err = store.MigrateDown(ctx, *c.Down)
	default:
		err = store.Migrate(ctx)
	}
	if err != nil {
		return err
	}
	after, err := store.Applied(ctx)
	if err != nil {
		return err
	}
	return c.tell(s, where.Schema, before.Version, after.Version)
}

// from is the version that a script begins with where no Postgres tells.
func (c *syncMigrateCmd) from() int {
	if c.Down != nil {
		return pgstore.SchemaVersion()
	}
	return 0
}

func (c *syncMigrateCmd) print(s *session, schema string, now pgstore.Applied) (err error) {
	var script string
	switch {
	case c.Down != nil && now.Version == 0, c.Down == nil && now.Version >= pgstore.SchemaVersion():
		_, err = fmt.Fprintf(s.err, "postern: nothing to do: schema %s is at version %d.\n", schema, now.Version)
		return err
	case c.Down != nil:
		script, err = pgstore.MigrationDownSQL(schema, now.Version, *c.Down)
	default:
		script, err = pgstore.MigrationSQL(schema, now.Version)
	}
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	_, err = fmt.Fprint(s.out, script)
	return err
}

func (c *syncMigrateCmd) tell(s *session, schema string, before, after int) (err error) {
	switch {
	case before != after:
		_, err = fmt.Fprintf(s.out, "Schema %s: version %d before, %d now.\n", schema, before, after)
	case after > pgstore.SchemaVersion():
		_, err = fmt.Fprintf(s.out, "Schema %s: version %d, newer than this Postern (%d), which can work with it. Nothing to do.\n", schema, after, pgstore.SchemaVersion())
	default:
		_, err = fmt.Fprintf(s.out, "Schema %s: version %d. Nothing to do.\n", schema, after)
	}
	return err
}

type syncRetryCmd struct {
	adminFlags
	jsonFlag
}

// Help is shown under the command's usage.
func (syncRetryCmd) Help() string {
	return "Mend the cause first: `postern sync refused` shows it. A row that is refused again is set apart again.\n\nExample:\n\n    postern sync retry"
}

// Run has the running Postern put the rows back.
func (c *syncRetryCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.SyncRetry(context.Background())
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	_, err = fmt.Fprintf(s.out, "%s put back; sent with the next batch.\n", term.Count(reply.Value.Retried, "row"))
	return err
}

type syncRefusedCmd struct {
	adminFlags
	jsonFlag
	Limit int `placeholder:"N" default:"50" help:"At most N of them (1 to 1000)."`
}

// Help is shown under the command's usage.
func (syncRefusedCmd) Help() string {
	return "Example:\n\n    postern sync refused\n    postern sync refused --json | jq .total"
}

// Validate is called by kong.
func (c *syncRefusedCmd) Validate() error { return checkLimit(c.Limit) }

// Run prints one line per row, oldest first.
func (c *syncRefusedCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	reply, err := admin.SyncRefused(context.Background(), c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return s.printJSON(reply.Raw)
	}
	return s.refusedTable(reply.Value)
}

func (s *session) refusedTable(list client.RefusedList) error {
	if list.Total == 0 {
		_, err := fmt.Fprintln(s.out, "No rows are set apart.")
		return err
	}
	table := term.NewTable(term.Column{Title: "EVENT"}, term.Column{Title: "ENDPOINT", Cut: true}, term.Column{Title: "STATE"},
		term.Column{Title: "ATTEMPT", Right: true}, term.Column{Title: "REFUSED", Cut: true}, term.Column{Title: "CAUSE", Cut: true})
	for _, r := range list.Refused {
		attempt := "-"
		if r.Attempt > 0 {
			attempt = fmt.Sprint(r.Attempt)
		}
		table.Row(term.Cell{Text: r.EventID}, term.Cell{Text: r.Endpoint}, term.Cell{Text: dash(r.State)}, term.Cell{Text: attempt},
			term.Cell{Text: term.When(r.RefusedAt, s.now())}, term.Cell{Text: r.Cause, Color: term.Bad})
	}
	if err := table.Write(s.out); err != nil {
		return err
	}
	if more := list.Total - int64(len(list.Refused)); more > 0 {
		_, err := fmt.Fprintf(s.out, "%d more: --limit shows up to 1000.\n", more)
		return err
	}
	return nil
}
