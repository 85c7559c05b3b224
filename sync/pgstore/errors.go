package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Kind is what a failure means for whoever wrote.
type Kind int

// The kinds of failures.
const (
	// KindAway: the server cannot be reached, is starting, stopping, full or slow. The same call may work later.
	KindAway Kind = iota + 1
	// KindData: the server refuses a row of the batch. The same batch will never work; other rows will.
	KindData
	// KindSetup: the server answers, and something must be put right by a person: password, rights, a missing table.
	KindSetup
)

// String returns the kind's name, as logs show it.
func (k Kind) String() string {
	switch k {
	case KindAway:
		return "away"
	case KindData:
		return "data"
	case KindSetup:
		return "setup"
	}
	return "none"
}

// ErrNewerSchema means that a newer Postern has changed the schema in a way that this one cannot work with.
var ErrNewerSchema = errors.New("the schema in Postgres was changed by a newer Postern that this version cannot work with: upgrade this instance")

// Classify tells what kind of failure an error of this package is, 0 for nil.
func Classify(err error) Kind {
	if err == nil {
		return 0
	}
	if errors.Is(err, ErrNewerSchema) {
		return KindSetup
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return KindAway
	}
	switch pg.Code[:2] {
	case "22", "23", "44", "P0": // data, constraints, views with a check, what a trigger raised
		return KindData
	case "28", "3D", "3F", "42", "0A", "25": // password, database, schema, tables and rights, features, read-only
		return KindSetup
	case "54": // a row too big for an index
		return KindData
	}
	return KindAway
}

// noSchema comes first where something is missing: a mistyped name is more likely than a table that somebody dropped.
const noSchema = "the schema {schema} does not exist, or is not one of Postern's, or this role may not use it: check its name (sync.schema, --schema); if it is right, run postern sync migrate, or grant the role what docs/sync.md lists; "

// anew is the way back where something was dropped by hand: each down step drops what is left, each up step makes it.
var anew = fmt.Sprintf("if a table, view or function was dropped by hand, postern sync migrate --down %d, which drops the others and what is in them, and then again without --down, makes it anew", len(migrations))

// noneYet is for a schema in which nothing of Postern's can be seen at all: it is new, or mistyped.
const noneYet = "the schema {schema} does not exist, or is not one of Postern's, or this role may not use it: check its name (sync.schema, --schema); if it is right, no Postern has reported here yet:" +
	" the first one that runs with this sync.dsn makes it, and so does postern sync migrate"

// taken is for a schema in which the first migration meets what it would make.
const taken = "the schema {schema} has something of this name already, and no table schema_migrations that says it is Postern's: give Postern a schema of its own (sync.schema, --schema);" +
	" if all that is in this one is Postern's, so that only schema_migrations was dropped by hand, and may go, DROP SCHEMA {schema} CASCADE and then postern sync migrate make it anew"

// next says what to do about the failures that a person must mend, by SQLSTATE.
var next = map[string]string{
	"28P01": "check user and password in sync.dsn",
	"28000": "let this user in from this host (pg_hba.conf), or check sync.dsn",
	"3D000": "create the database, or check its name in sync.dsn",
	"3F000": "run postern sync migrate with a role that may create the schema",
	"42501": "grant the role what docs/sync.md lists, or run postern sync migrate with the schema's owner",
	"42P01": noSchema + anew,
	"42703": "a column is missing: run postern sync migrate",
	"42883": noSchema + anew,
	"42P07": taken, // a relation
	"42723": taken, // a function
	"2BP01": "a view or the like that Postern did not make goes by it: drop that first (the same DROP in psql names it)",
	"53100": "the disk of Postgres is full: make room there",
	"25006": "this Postgres takes no writes: sync.dsn must name the primary",
}

// missing tells that a statement met no relation or function of a name.
func missing(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "42P01" || pg.Code == "42883")
}

// wrapMissing is wrap for what is not there: where schema_migrations is not there either, which relation it was says nothing.
func (s *Store) wrapMissing(ctx context.Context, c call, err error) error {
	var there bool
	look := s.link.tx(ctx, c.begin, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&there)
	})
	if look != nil || there {
		return s.wrap(c.what, err)
	}
	return &storeError{c.what + ": " + strings.ReplaceAll(noneYet, "{schema}", strconv.Quote(s.cfg.Schema)), err}
}

// wrap adds the operation and, where there is one, the next step. Of Postgres's own text only message and code are
// taken: its details repeat rows. A failed connection is told without the user's name.
func (s *Store) wrap(what string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if hint := strings.ReplaceAll(next[pg.Code], "{schema}", strconv.Quote(s.cfg.Schema)); hint != "" {
			return &storeError{fmt.Sprintf("%s: Postgres says: %s (%s): %s", what, pg.Message, pg.Code, hint), err}
		}
		return &storeError{fmt.Sprintf("%s: Postgres says: %s (%s)", what, pg.Message, pg.Code), err}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &storeError{what + ": Postgres did not answer in time", err}
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return &storeError{what + ": Postgres cannot be reached: " + lastPart(connect.Unwrap()), err}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// lastPart is the cause at the end of a chain of errors, on one line.
func lastPart(err error) string {
	text := err.Error()
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return strings.TrimSpace(text)
}

// storeError has a text of its own, and its cause for errors.As.
type storeError struct {
	text  string
	cause error
}

func (e *storeError) Error() string { return e.text }
func (e *storeError) Unwrap() error { return e.cause }
