package pgstore

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one numbered step.
type migration struct {
	version  int
	name     string
	up, down string
}

// migrateTimeout bounds a migration: it may wait for fifty others, and rewrite a table.
const migrateTimeout = 5 * time.Minute

// migrations are the embedded steps in order.
var migrations = mustLoad(migrationFiles)

// mustLoad panics on files that a build should never have had; a test loads them.
func mustLoad(files embed.FS) []migration {
	paths, err := fs.Glob(files, "migrations/*.up.sql")
	if err != nil {
		panic(err)
	}
	var list []migration
	for i, path := range paths {
		up, uerr := files.ReadFile(path)
		down, derr := files.ReadFile(strings.Replace(path, ".up.", ".down.", 1))
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".up.sql")
		version, verr := strconv.Atoi(strings.SplitN(name, "_", 2)[0])
		if uerr != nil || derr != nil || verr != nil || version != i+1 {
			panic(fmt.Sprintf("migration %s: no number, a gap, or no way down", name))
		}
		list = append(list, migration{version, name, string(up), string(down)})
	}
	return list
}

// SchemaVersion is the number of the last migration that this build knows.
func SchemaVersion() int { return len(migrations) }

// versionsTable has the migrations that were run. needs is the lowest SchemaVersion of a build that can work with the
// schema as it is after the migration: a newer Postern raises it when it takes something away.
const versionsTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    needs      integer NOT NULL DEFAULT 1,
    applied_at timestamptz NOT NULL DEFAULT now()
)`

// lockSQL makes migrations of one schema wait for each other until the transaction ends. The number belongs to no other
// program's locks: it is "postern" and the schema's name, hashed by Postgres.
func (c Config) lockSQL() string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(hashtextextended('postern migrations of %s', 0))", c.Schema)
}

// Applied is the state of the schema.
type Applied struct {
	Version int // the last migration that was run; 0: none
	Needs   int // the lowest SchemaVersion that can work with it
}

// Applied returns the state of the schema; a schema that is not there has version 0.
func (s *Store) Applied(ctx context.Context) (a Applied, err error) {
	err = s.tx(ctx, s.usual("read the schema's version"), func(ctx context.Context, tx pgx.Tx) error {
		a, err = applied(ctx, tx)
		return err
	})
	return a, err
}

func applied(ctx context.Context, tx pgx.Tx) (a Applied, err error) {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&there); err != nil || !there {
		return a, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM schema_migrations`).Scan(&a.Version, &a.Needs)
	return a, err
}

// Migrate brings the schema to this build's version. Where it is there already nothing is written, so that a role
// without the right to create anything will do. A newer schema is left as it is: that is said, and only where this
// build cannot work with it is the error ErrNewerSchema.
func (s *Store) Migrate(ctx context.Context) error {
	a, err := s.Applied(ctx)
	if err != nil {
		return err
	}
	if a.Version >= SchemaVersion() {
		return s.newer(a)
	}
	s.forgetEndpoints()
	return s.migration(ctx, "migrate the schema", func(ctx context.Context, tx pgx.Tx) error {
		if err := s.prepare(ctx, tx); err != nil {
			return err
		}
		a, err := applied(ctx, tx) // another instance may have been faster
		if err != nil {
			return err
		}
		for _, m := range migrations[min(a.Version, len(migrations)):] {
			if err := run(ctx, tx, m.up); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if _, err := tx.Exec(ctx, `INSERT INTO schema_migrations (version, name) VALUES ($1, $2)`, m.version, m.name); err != nil {
				return err
			}
			s.cfg.Logger.Info("migrated the schema in Postgres", "migration", m.name, "schema", s.cfg.Schema)
		}
		return nil
	})
}

// MigrateDown takes back the last n migrations, all of them where there are fewer, with everything that is stored in
// what they made.
func (s *Store) MigrateDown(ctx context.Context, n int) error {
	s.forgetEndpoints()
	return s.migration(ctx, "take migrations back", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.cfg.lockSQL()); err != nil {
			return err
		}
		a, err := applied(ctx, tx)
		if err != nil {
			return err
		}
		if a.Version > len(migrations) {
			return ErrNewerSchema
		}
		for v := a.Version; v > max(a.Version-n, 0); v-- {
			if err := run(ctx, tx, migrations[v-1].down); err != nil {
				return fmt.Errorf("%s: %w", migrations[v-1].name, err)
			}
			if _, err := tx.Exec(ctx, `DELETE FROM schema_migrations WHERE version = $1`, v); err != nil {
				return err
			}
			s.cfg.Logger.Info("took a migration back", "migration", migrations[v-1].name, "schema", s.cfg.Schema)
		}
		return nil
	})
}

func (s *Store) newer(a Applied) error {
	switch {
	case a.Needs > SchemaVersion():
		return fmt.Errorf("%w (it needs schema version %d, this one knows %d)", ErrNewerSchema, a.Needs, SchemaVersion())
	case a.Version > SchemaVersion():
		s.cfg.Logger.Warn("the schema in Postgres is newer than this Postern, which can work with it and goes on",
			"schema", s.cfg.Schema, "schema_version", a.Version, "known_version", SchemaVersion())
	}
	return nil
}

// migration runs fn in a transaction with a migration's limits.
func (s *Store) migration(ctx context.Context, what string, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return s.tx(ctx, call{what, s.beginWith(migrateTimeout.Milliseconds(), 0), migrateTimeout}, fn)
}

// prepare makes the schema and the table of versions, alone.
func (s *Store) prepare(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, s.cfg.lockSQL()); err != nil {
		return err
	}
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, s.cfg.Schema).Scan(&there); err != nil {
		return err
	}
	if !there {
		// Not CREATE IF NOT EXISTS: that asks for the right to create even where there is nothing to do.
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+s.cfg.quoted()); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, versionsTable)
	return err
}

// run runs a file of statements.
func run(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// MigrationSQL is what Migrate runs on a schema of version from, as a script for psql: one transaction.
func MigrationSQL(schema string, from int) (string, error) {
	c := Config{DSN: "-", Schema: schema}.withDefaults()
	if err := c.validate(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN;\n%s;\nCREATE SCHEMA IF NOT EXISTS %s;\nSET LOCAL search_path = %s, pg_temp;\n%s;\n", c.lockSQL(), c.quoted(), c.quoted(), versionsTable)
	for _, m := range migrations[min(max(from, 0), len(migrations)):] {
		fmt.Fprintf(&b, "\n-- %s\n%s\nINSERT INTO schema_migrations (version, name) VALUES (%d, '%s');\n", m.name, m.up, m.version, m.name)
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String(), nil
}
