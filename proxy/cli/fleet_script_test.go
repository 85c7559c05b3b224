package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// TestFleetScripts are like TestScripts, with a real Postgres: $DSN, and a schema of the script's own, $SCHEMA, which
// nobody has made yet. Beside the other commands there are
//
//	made-up KIND URL [N]   write rows that a fleet could have written, see madeUp
//	sql STATEMENTS         run statements, with the script's schema in front
func TestFleetScripts(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(receive))
	t.Cleanup(receiver.Close)
	dsn := os.Getenv("POSTERN_TEST_DATABASE_URL")
	if dsn == "" {
		dsn = pgtest.Start(t).DSN()
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/fleet",
		WorkdirRoot:         t.TempDir(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "start-postern": startPostern, "stop-postern": stopPostern, "eventually": eventually, "made-up": madeUp, "sql": runSQL,
		},
		Setup: func(env *testscript.Env) error {
			db := pgtest.On(t, dsn)
			env.Values[database{}], env.Values[running{}] = db, &background{}
			for name, value := range map[string]string{"TZ": "UTC", "RECV": receiver.URL, "DSN": dsn, "SCHEMA": db.Schema} {
				env.Setenv(name, value)
				if err := expandFile(env.WorkDir+"/postern.yaml", "$"+name, value); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// database is the key of the script's schema.
type database struct{}

func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql statements")
	}
	ts.Value(database{}).(*pgtest.DB).Exec(args[0])
}

// madeUp writes N (default 1) events of one endpoint, as an instance that is alive:
//
//	delivered  20 ms, a minute ago      slow     3 s, a minute ago     yesterday  20 ms, 26 hours ago
//	dead       503, a minute ago        waiting  accepted 40 minutes ago, never tried
//	stuck      accepted five hours ago, last tried four hours ago
func madeUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: made-up kind url [n]")
	}
	n := 1
	if len(args) > 2 {
		var err error
		n, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	db, ctx := ts.Value(database{}).(*pgtest.DB), context.Background()
	store, err := pgstore.Open(ctx, pgstore.Config{
		DSN: db.DSN, Schema: db.Schema, Instance: "0190a6c0-7b2c-7def-8123-00000000000a", Version: "1.2.3", Labels: map[string]string{"service": "checkout"},
	})
	ts.Check(err)
	defer store.Close()
	ts.Check(store.Migrate(ctx))
	var rows []pgstore.Row
	for i := range n {
		rows = append(rows, madeUpRow(ts, args[0], args[1], i))
	}
	ts.Check(store.Write(ctx, rows))
	_, err = store.Heartbeat(ctx, pgstore.Heartbeat{BacklogRows: 3, SpoolBytes: 1 << 20})
	ts.Check(err)
	ts.Check(store.WriteHealth(ctx, []pgstore.Health{{EndpointName: args[1], EndpointURL: args[1], State: "closed"}}))
}

func madeUpRow(ts *testscript.TestScript, kind, url string, i int) pgstore.Row {
	now := time.Now()
	kinds := map[string]struct {
		status        string
		accepted, end time.Duration // ago
		took          time.Duration
		code          int
	}{
		"delivered": {"delivered", time.Minute, time.Minute, 20 * time.Millisecond, 200},
		"slow":      {"delivered", time.Minute, time.Minute, 3 * time.Second, 200},
		"yesterday": {"delivered", 26 * time.Hour, 26 * time.Hour, 20 * time.Millisecond, 200},
		"dead":      {"dead_letter", time.Hour, time.Minute, time.Millisecond, 503},
		"waiting":   {"pending", 40 * time.Minute, 0, 0, 0},
		"stuck":     {"failed", 5 * time.Hour, 4 * time.Hour, time.Millisecond, 503},
	}
	k, ok := kinds[kind]
	if !ok {
		ts.Fatalf("made-up: there is no kind %s", kind)
	}
	row := pgstore.Row{
		EventID: fmt.Sprintf("%s-%s-%d", kind, url, i), CreatedAt: now.Add(-k.accepted), Version: 1, EndpointName: url, EndpointURL: url,
		Status: k.status, MaxAttempts: 5, NextAttempt: now.Add(-cmp.Or(k.end, k.accepted)),
	}
	if k.end > 0 {
		row.Attempts, row.Attempt = 1, &pgstore.Attempt{Number: 1, EndedAt: now.Add(-k.end), Duration: k.took, StatusCode: k.code}
		if k.code != http.StatusOK {
			row.Attempt.Error = fmt.Sprint("http_", k.code)
		}
	}
	return row
}
