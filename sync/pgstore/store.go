package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store is a door to one schema. It connects at its first use, and again whenever it must. Safe for concurrent use.
type Store struct {
	cfg   Config
	pool  *pgxpool.Pool
	begin string

	skewed atomic.Bool // that the clocks differ was said

	mu  sync.Mutex            // guards ids
	ids map[endpointRef]int32 // as far as known
}

// maxConns is how many connections a store opens at most: one for the syncer, one for health and people. A fleet of
// hundreds must not use up a server.
const maxConns = 2

// Open checks the configuration and returns a store. It does not connect: a Postgres that is away now may come.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	pc, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil {
		// The library's text repeats parts of the connection string.
		return nil, errors.New("sync.dsn cannot be read: give postgres://user:password@host:port/database?sslmode=verify-full, or keyword=value pairs, and check the files that it names")
	}
	// Neither named statements nor cached descriptions: behind a transaction pooler the next call may meet another server
	// process, and a migration by another instance may change what a statement means.
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pc.ConnConfig.StatementCacheCapacity, pc.ConnConfig.DescriptionCacheCapacity = 0, 0
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "postern"
	}
	if pc.ConnConfig.ConnectTimeout <= 0 || pc.ConnConfig.ConnectTimeout > connectTimeout {
		pc.ConnConfig.ConnectTimeout = connectTimeout
	}
	pc.MaxConns, pc.MinConns, pc.MinIdleConns = maxConns, 0, 0
	pc.PingTimeout = connectTimeout
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("prepare the connections to Postgres: %w", err)
	}
	s := &Store{cfg: cfg, pool: pool, ids: make(map[endpointRef]int32)}
	s.begin = s.beginWith(cfg.Timeout.Milliseconds(), 0)
	return s, nil
}

// beginWith begins a transaction with its limits and search path, in one round trip. Milliseconds; 0 means none.
func (s *Store) beginWith(statement, lock int64) string {
	return fmt.Sprintf("BEGIN; SET LOCAL search_path = %s, pg_temp; SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = 60000",
		s.cfg.quoted(), statement, lock)
}

// Close closes the connections. It does not wait for a server that does not answer.
func (s *Store) Close() { s.pool.Close() }

// tx runs fn in a transaction of the usual limits.
func (s *Store) tx(ctx context.Context, what string, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return s.txWith(ctx, s.begin, what, fn)
}

func (s *Store) txWith(ctx context.Context, begin, what string, fn func(ctx context.Context, tx pgx.Tx) error) error {
	// The server's own limit comes first where it answers at all. This one is for servers that do not.
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.Timeout)
	defer cancel()
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error { return fn(ctx, tx) })
	if err != nil {
		return s.wrap(what, err)
	}
	return nil
}
