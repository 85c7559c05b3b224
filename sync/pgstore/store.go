package pgstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Store is a door to one schema, through one connection, which is made at the first use and again whenever it must be:
// a fleet of hundreds must not use up a server. Safe for concurrent use.
type Store struct {
	cfg   Config
	link  *link
	begin string

	skewed atomic.Bool // that the clocks differ was said
	beaten atomic.Bool // a heartbeat has been sent
	copied atomic.Bool // that another process has this instance's ID was said

	mu  sync.Mutex            // guards ids
	ids map[endpointRef]int32 // as far as known
}

// Open checks the configuration and returns a store. It does not connect: a Postgres that is away now may come.
func Open(_ context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	pc, err := parseDSN(cfg.DSN)
	if err != nil {
		return nil, err
	}
	// Neither named statements nor cached descriptions: behind a transaction pooler the next call may meet another server
	// process, and a migration by another instance may change what a statement means.
	pc.DefaultQueryExecMode = pgx.QueryExecModeExec
	pc.StatementCacheCapacity, pc.DescriptionCacheCapacity = 0, 0
	if pc.RuntimeParams["application_name"] == "" {
		pc.RuntimeParams["application_name"] = "postern"
	}
	if pc.ConnectTimeout <= 0 || pc.ConnectTimeout > connectTimeout {
		pc.ConnectTimeout = connectTimeout
	}
	s := &Store{cfg: cfg, link: newLink(pc), ids: make(map[endpointRef]int32)}
	s.begin = s.beginWith(cfg.Timeout.Milliseconds(), 0)
	return s, nil
}

// ours are the settings that a role, a database or a pooler's last client may have made otherwise, and that answers depend
// on: an endpoint's number is looked up after another instance's insert (READ COMMITTED); times are read as ISO writes them,
// floats unrounded, texts as UTF-8; and NULL in an array is no word.
const ours = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL datestyle = 'ISO, MDY'; SET LOCAL extra_float_digits = 1;" +
	" SET LOCAL client_encoding = 'UTF8'; SET LOCAL array_nulls = on"

// beginWith begins a transaction with its limits and search path, in one round trip. Milliseconds; 0 means none.
func (s *Store) beginWith(statement, lock int64) string {
	return fmt.Sprintf("%s; SET LOCAL search_path = %s, pg_temp; SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = 60000",
		ours, s.cfg.quoted(), statement, lock)
}

// Close closes the connection. It does not wait for a server that does not answer.
func (s *Store) Close() { s.link.close() }

// call is one transaction: what it is for, how it begins, and how long it may take in all.
type call struct {
	what, begin string
	limit       time.Duration
}

// usual is a call of the usual limits. The server's own comes first where it answers at all; the one over all is for
// servers that do not.
func (s *Store) usual(what string) call { return call{what, s.begin, 2 * s.cfg.Timeout} }

// tx runs fn in a transaction.
func (s *Store) tx(ctx context.Context, c call, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	err := s.link.tx(ctx, c.begin, func(tx pgx.Tx) error { return fn(ctx, tx) })
	switch {
	case err == nil:
		return nil
	case missing(err):
		return s.wrapMissing(ctx, c, err)
	}
	return s.wrap(c.what, err)
}
