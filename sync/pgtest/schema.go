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
	dsn    string
	remove func() error
	err    error
}

// Main runs the tests of a package and ends the shared server after them: func TestMain(m *testing.M) { pgtest.Main(m) }.
// The test binary exits with the result of m.Run by itself.
func Main(m *testing.M) {
	m.Run()
	if shared.remove != nil {
		if err := shared.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "remove the server:", err)
		}
	}
}

// Provide names a server for programs that are no test: the one of POSTERN_TEST_DATABASE_URL, else one that it starts with
// the given settings, such as "fsync=on", and that remove ends and clears up.
func Provide(options ...string) (dsn string, remove func() error, err error) {
	if dsn = os.Getenv("POSTERN_TEST_DATABASE_URL"); dsn != "" {
		return dsn, func() error { return nil }, nil
	}
	s, err := start(options)
	if err != nil {
		return "", nil, err
	}
	return s.DSN(), s.remove, nil
}

// DSN is the connection string of the server that the tests of this binary share.
func DSN(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.dsn, shared.remove, shared.err = Provide() })
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
	db.conn(func(ctx context.Context, conn *Conn) error { return conn.Exec(ctx, sql) })
}

// Rows returns a query's rows, every value as Postgres writes it as text; null is the text "null".
func (db *DB) Rows(sql string) (rows [][]string) {
	db.t.Helper()
	db.conn(func(ctx context.Context, conn *Conn) (err error) {
		rows, err = conn.Rows(ctx, sql)
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

// Dump is everything that the schema's tables hold, a row a line. It needs no program beside the server.
func (db *DB) Dump() string {
	db.t.Helper()
	var b strings.Builder
	for _, table := range db.Rows(`SELECT c.oid::regclass FROM pg_class c WHERE c.relnamespace = current_schema::regnamespace AND c.relkind = 'r' ORDER BY 1`) {
		for _, row := range db.Rows("SELECT t::text FROM " + table[0] + " t") {
			fmt.Fprintln(&b, table[0], row[0])
		}
	}
	return b.String()
}

func (db *DB) conn(fn func(ctx context.Context, conn *Conn) error) {
	db.t.Helper()
	ctx := db.t.Context()
	conn, err := Dial(ctx, db.DSN, db.Schema)
	if err != nil {
		db.t.Fatal(err)
	}
	defer conn.Close()
	if err = fn(ctx, conn); err != nil {
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
