package pgstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
	"postern/sync/pgtest/intime"
)

// TestTerminatedBackends: the connection that is at hand is dead; at most one call fails, and the next one works.
func TestTerminatedBackends(t *testing.T) {
	s, db := migrated(t)
	for i := range 5 {
		write(t, s, delivered(fmt.Sprint("a", i), 1))
		db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postern'`)
		row := []pgstore.Row{delivered(fmt.Sprint("b", i), 1)}
		if err := s.Write(t.Context(), row); err != nil {
			if pgstore.Classify(err) != pgstore.KindAway {
				t.Errorf("kind %v of %v", pgstore.Classify(err), err)
			}
			write(t, s, row...)
		}
	}
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 10)
	same(t, "counted once", db.Value(`SELECT sum(attempts) FROM endpoint_hours`), 10)
}

func TestRestart(t *testing.T) {
	server := pgtest.Start(t)
	db := pgtest.On(t, server.DSN())
	s := open(t, db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, s, delivered("a", 1))
	if err := server.Down(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := s.Write(t.Context(), []pgstore.Row{delivered("b", 1)})
		if pgstore.Classify(err) != pgstore.KindAway {
			t.Errorf("while it is down: %v, %v", pgstore.Classify(err), err)
		}
	}
	if err := server.Up(); err != nil {
		t.Fatal(err)
	}
	write(t, s, delivered("b", 1))
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 2)
}

// TestFrozen: a server that accepts and says nothing costs no more than the caller's limit, and the limit of the store.
func TestFrozen(t *testing.T) {
	server := pgtest.Start(t)
	db := pgtest.On(t, server.DSN())
	limited := func() *pgstore.Store { return open(t, db, func(c *pgstore.Config) { c.Timeout = time.Second }) }
	s := limited()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, s, delivered("a", 1))
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	for what, limit := range map[string]time.Duration{"the caller's limit": 300 * time.Millisecond, "its own limit": time.Minute} {
		intime.Since(t, min(limit, 2*time.Second)+time.Second, what, func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := s.Write(ctx, []pgstore.Row{delivered("b", 1)}); pgstore.Classify(err) != pgstore.KindAway {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	write(t, s, delivered("b", 1))
	same(t, "counted once", db.Value(`SELECT sum(attempts) FROM endpoint_hours`), 2)
	intime.Hold(t, time.Second, "closing", func() time.Duration {
		_ = server.Freeze()
		began := time.Now()
		s.Close()
		took := time.Since(began)
		_ = server.Thaw()
		s = limited()
		write(t, s, delivered("b", 1)) // so that it has a connection
		return took
	})
}

// TestALockedTableIsNoHang: a statement that waits for somebody's lock ends by the server's limit.
func TestALockedTableIsNoHang(t *testing.T) {
	s, db := migrated(t, func(c *pgstore.Config) { c.Timeout = 300 * time.Millisecond })
	write(t, s, delivered("a", 1))
	release := db.Hold(`LOCK TABLE webhook_queue`)
	err := s.Write(t.Context(), []pgstore.Row{delivered("b", 1)})
	release()
	if pgstore.Classify(err) != pgstore.KindAway || !strings.Contains(err.Error(), "57014") {
		t.Errorf("kind %v of %v", pgstore.Classify(err), err)
	}
	write(t, s, delivered("b", 1))
}

func TestTheOperatorIsToldTheNextStep(t *testing.T) {
	_, db := migrated(t)
	dsn, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(u *url.URL)) string {
		u := *dsn
		change(&u)
		return u.String()
	}
	for _, tc := range []struct {
		name, dsn, prepare, want string
		kind                     pgstore.Kind
	}{
		{"wrong password", changed(func(u *url.URL) { u.User = url.UserPassword("postgres", "HUSH") }), "", "check user and password in sync.dsn", pgstore.KindSetup},
		{"no such user", changed(func(u *url.URL) { u.User = url.UserPassword("nobody_here", "HUSH") }), "", "check user and password in sync.dsn", pgstore.KindSetup},
		{"no such database", changed(func(u *url.URL) { u.Path = "/elsewhere" }), "", "create the database", pgstore.KindSetup},
		{"nobody listens", changed(func(u *url.URL) { u.Host = "127.0.0.1:1" }), "", "cannot be reached", pgstore.KindAway},
		{"no such host", changed(func(u *url.URL) { u.Host = "host.invalid:5432" }), "", "cannot be reached", pgstore.KindAway},
		{"no TLS there", changed(func(u *url.URL) { u.RawQuery = "sslmode=require" }), "", "cannot be reached", pgstore.KindAway},
		{"a dropped table", db.DSN, `DROP TABLE endpoint_hours`, "check its name (sync.schema, --schema); if it is right, run postern sync migrate", pgstore.KindSetup},
		{"which comes back", db.DSN, ``, "postern sync migrate --down 3", pgstore.KindSetup},
		{"nothing of ours", db.DSN, `DROP TABLE schema_migrations`, "no Postern has reported here yet: the first one that runs with this sync.dsn makes it", pgstore.KindSetup},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.prepare != "" {
				db.Exec(tc.prepare)
			}
			s := open(t, db, func(c *pgstore.Config) { c.DSN = tc.dsn })
			err := s.Write(t.Context(), []pgstore.Row{delivered("a", 1)})
			if err == nil || !strings.Contains(err.Error(), tc.want) || pgstore.Classify(err) != tc.kind {
				t.Errorf("kind %v of %v, want %v and %q", pgstore.Classify(err), err, tc.kind, tc.want)
			}
			for _, secret := range []string{"HUSH", "nobody_here:", "pgtest"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error has %q in it: %v", secret, err)
				}
			}
		})
	}
}

func TestBadConfigurations(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		change     func(*pgstore.Config)
	}{
		{"no DSN", "sync.dsn is empty", func(c *pgstore.Config) { c.DSN = "" }},
		{"no DSN at all", "sync.dsn: the port is not a number", func(c *pgstore.Config) { c.DSN = "postgres://u:HUSH@h:notaport/x" }},
		{"missing CA", "sync.dsn cannot be read", func(c *pgstore.Config) { c.DSN = "postgres://u:HUSH@h/x?sslmode=verify-full&sslrootcert=/nowhere" }},
		{"schema", "sync.schema", func(c *pgstore.Config) { c.Schema = `x"; DROP` }},
		{"instance", "UUID", func(c *pgstore.Config) { c.Instance = "me" }},
	} {
		cfg := pgstore.Config{DSN: "postgres://u:HUSH@h/x"}
		tc.change(&cfg)
		s, err := pgstore.Open(t.Context(), cfg)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "HUSH") {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// TestClocks: this machine's clock and the server's are an hour apart. Rows keep their own times, the living stay alive,
// and the operator is told, once.
func TestClocks(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			var log bytes.Buffer
			s, db := migrated(t, func(c *pgstore.Config) {
				c.Now = func() time.Time { return time.Now().Add(off) }
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			when := now.Add(off)
			write(t, s, at(delivered("a", 5*time.Millisecond), when))
			for i := range 3 {
				beat, err := s.Heartbeat(t.Context(), pgstore.Heartbeat{})
				if err != nil || (beat.Skew-off).Abs() > 5*time.Second {
					t.Errorf("the clocks differ by %v, %v", beat.Skew, err)
				}
				same(t, "unknown before", beat.New, i == 0)
			}
			if n := strings.Count(log.String(), "set the clocks"); n != 1 {
				t.Errorf("said %d times: %s", n, &log)
			}
			same(t, "measured", db.Rows(`SELECT measured_at = '`+when.Format(time.RFC3339)+`' FROM endpoint_latency`), "[[t]]")
			same(t, "live", db.Value(`SELECT count(*) FROM live_instances`), 1)
			same(t, "samples", db.Value(`SELECT sample_count FROM endpoint_percentiles('`+partner+`', '24 hours')`), 1)
			maintain(t, s, true)
			write(t, s, at(delivered("a", 5*time.Millisecond), when))
			same(t, "counted once", db.Value(`SELECT sum(attempts) FROM endpoint_hours`), 1)
		})
	}
}

// TestACopiedSpool: two processes with one instance's ID are told apart by when they started, and the operator is told
// once. A restart is none, and neither is another instance.
func TestACopiedSpool(t *testing.T) {
	var log bytes.Buffer
	logged := func(c *pgstore.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	s, db := migrated(t, logged)
	beat := func(s *pgstore.Store, started time.Time) {
		t.Helper()
		if _, err := s.Heartbeat(t.Context(), pgstore.Heartbeat{StartedAt: started}); err != nil {
			t.Fatal(err)
		}
	}
	first := time.Now().Add(-time.Hour)
	beat(s, first)
	beat(s, first)
	beat(open(t, db, instance(instanceB)), time.Now())
	restarted, second := open(t, db, logged), time.Now()
	beat(restarted, second)
	beat(restarted, second)
	if strings.Contains(log.String(), "a copy") {
		t.Fatalf("said of a restart: %s", &log)
	}
	beat(s, first) // the first one was not stopped after all
	beat(restarted, second)
	beat(s, first)
	if n := strings.Count(log.String(), "its spool is a copy"); n != 2 {
		t.Errorf("said %d times by two processes: %s", n, &log)
	}
}
