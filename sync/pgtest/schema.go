package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared is the server of this test binary.
var shared struct {
	once   sync.Once
	server *Server
	dsn    string
	err    error
}

// Main runs the tests of a package and ends the shared server after them: func TestMain(m *testing.M) { pgtest.Main(m) }.
// The test binary exits with the result of m.Run by itself.
func Main(m *testing.M) {
	m.Run()
	if s := shared.server; s != nil {
		if err := s.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "remove the server:", err)
		}
	}
}

// DSN is the connection string of the server that the tests of this binary share.
func DSN(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		if shared.dsn = os.Getenv("POSTERN_TEST_DATABASE_URL"); shared.dsn != "" {
			return
		}
		if shared.server, shared.err = start(nil); shared.err == nil {
			shared.dsn = shared.server.DSN()
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.dsn
}

// DB is a schema of the test's own, not yet created.
type DB struct {
	t      testing.TB
	DSN    string
	Schema string
}

// New returns a schema on the shared server.
func New(t testing.TB) *DB {
	t.Helper()
	return On(t, DSN(t))
}

// On returns a schema on a given server. It is dropped when the test ends.
func On(t testing.TB, dsn string) *DB {
	t.Helper()
	db := &DB{t: t, DSN: dsn, Schema: "t_" + strings.ToLower(rand.Text()[:16])}
	t.Cleanup(func() {
		// Its server may be down by now, and then there is nothing to drop.
		if conn, err := pgx.Connect(context.Background(), dsn); err == nil {
			conn.Close(context.Background())
			Run(t, dsn, "DROP SCHEMA IF EXISTS "+db.Schema+" CASCADE")
		}
	})
	return db
}

// Run runs statements on a server, also when the test's own context has ended.
func Run(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err == nil {
		_, err = conn.Exec(ctx, sql)
		_ = conn.Close(ctx)
	}
	if err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// Exec runs statements with the schema in front of the search path.
func (db *DB) Exec(sql string) {
	db.t.Helper()
	db.conn(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// Rows returns a query's rows, every value as Postgres writes it as text; null is the text "null".
func (db *DB) Rows(sql string) (rows [][]string) {
	db.t.Helper()
	db.conn(func(ctx context.Context, conn *pgx.Conn) error {
		result, err := conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(result, func(r pgx.CollectableRow) ([]string, error) {
			var row []string
			for _, v := range r.RawValues() {
				if v == nil {
					row = append(row, "null")
					continue
				}
				row = append(row, string(v))
			}
			return row, nil
		})
		return err
	})
	return rows
}

// Value returns the one value of a query's one row.
func (db *DB) Value(sql string) string {
	db.t.Helper()
	rows := db.Rows(sql)
	if len(rows) != 1 || len(rows[0]) != 1 {
		db.t.Fatalf("%s: %d rows, want one value", sql, len(rows))
	}
	return rows[0][0]
}

func (db *DB) conn(fn func(ctx context.Context, conn *pgx.Conn) error) {
	db.t.Helper()
	ctx := db.t.Context()
	conn, err := pgx.Connect(ctx, db.DSN)
	if err != nil {
		db.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err = conn.Exec(ctx, "SET search_path = "+db.Schema+"; SET timezone = 'UTC'"); err == nil {
		err = fn(ctx, conn)
	}
	if err != nil {
		db.t.Fatal(err)
	}
}

// Hold runs a query in a transaction that stays open until the returned function is called.
func (db *DB) Hold(sql string) (release func()) {
	db.t.Helper()
	ctx := db.t.Context()
	conn, err := pgx.Connect(ctx, db.DSN)
	if err == nil {
		_, err = conn.Exec(ctx, "BEGIN; SET LOCAL search_path = "+db.Schema+"; "+sql)
	}
	if err != nil {
		db.t.Fatal(err)
	}
	return func() { _ = conn.Close(context.WithoutCancel(ctx)) }
}
