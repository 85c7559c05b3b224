package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"postern/sync/pgtest"
)

// database is a migrated schema of its own in a Postgres.
type database struct {
	dsn, schema string
	conn        *pgtest.Conn
}

// withDatabase finds a Postgres as the tests do, or starts one with the given settings, has the binary make the schema,
// and removes both after f.
func (l *lab) withDatabase(ctx context.Context, settings []string, f func(*database) error) (err error) {
	d := &database{schema: "bench_" + strings.ToLower(rand.Text()[:12])}
	dsn, remove, err := pgtest.Provide(settings...)
	if err != nil {
		return needs{"a Postgres", err}
	}
	defer func() { err = errors.Join(err, remove()) }()
	d.dsn = dsn
	cmd := exec.CommandContext(ctx, l.binary, "sync", "migrate", "--schema", d.schema)
	cmd.Env, cmd.Dir = append(cmd.Environ(), "POSTERN_SYNC_DSN="+dsn), l.dir
	apart(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the schema: %w\n%s", err, out)
	}
	if d.conn, err = pgtest.Dial(ctx, dsn, d.schema); err != nil {
		return err
	}
	defer d.conn.Close()
	defer d.drop()
	return f(d)
}

// drop removes the schema from a server that is somebody else's, also after ctx has ended.
func (d *database) drop() {
	if conn, err := pgtest.Dial(context.Background(), d.dsn, d.schema); err == nil {
		_ = conn.Exec(context.Background(), "DROP SCHEMA "+d.schema+" CASCADE")
		conn.Close()
	}
}

// empty makes the tables as they were made, so that a round does not meet what an earlier one left.
func (d *database) empty(ctx context.Context) error {
	return d.conn.Exec(ctx, "TRUNCATE webhook_queue, endpoint_latency, endpoint_minutes, endpoint_hours, deleted_events; CHECKPOINT")
}

// sync is the lines of a configuration that reports here.
func (d *database) sync() string { return d.syncOver(d.dsn) }

// away is the same with a server that is not there: a reload can correct the connection string, and nothing else.
func (d *database) away() string { return d.syncOver("postgres://127.0.0.1:9/none?sslmode=disable") }

func (d *database) syncOver(dsn string) string {
	return fmt.Sprintf("sync: { dsn: %q, schema: %s }\n", dsn, d.schema)
}

// holds checks that every event and every attempt arrived, once.
func (d *database) holds(ctx context.Context, events int64) error {
	rows, err := d.conn.Rows(ctx, `SELECT count(*) FILTER (WHERE status = 'delivered'), count(*), (SELECT count(*) FROM endpoint_latency),
		(SELECT sum(attempts) FROM endpoint_minutes), (SELECT sum(attempts) FROM endpoint_hours) FROM webhook_queue`)
	if err != nil {
		return err
	}
	for _, n := range rows[0] {
		if n != fmt.Sprint(events) {
			return fmt.Errorf("of %d delivered events Postgres has: delivered %s, in all %s, attempts %s, in minutes %s, in hours %s",
				events, rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4])
		}
	}
	return nil
}
