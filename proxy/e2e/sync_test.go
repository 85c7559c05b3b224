package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"postern/sync/pgtest"
	"postern/sync/pgtest/intime"
)

// synced is a configuration with a Postgres.
func synced(db *pgtest.DB, more string) string {
	return calm + fmt.Sprintf("sync: { dsn: %q, schema: %s, interval: 200ms%s }\n", db.DSN, db.Schema, more)
}

// ask runs one query for one value, with the schema as search path.
func ask[T any](t *testing.T, db *pgtest.DB, query string, args ...any) (v T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET search_path TO "+db.Schema); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(ctx, query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Two instances, one Postgres: rows of both arrive once, equal event IDs are kept apart, and the fleet's health is one row
// for each endpoint.
func TestTwoInstancesOneFleet(t *testing.T) {
	db := pgtest.New(t)
	good, bad := newReceiver(t, nil), newReceiver(t, script(status(503)))
	config := synced(db, ", labels: { service: checkout }") + fmt.Sprintf("endpoints:\n  - { name: good, url: %q }\n  - { name: whole, url: %q }\n  - { name: bad, url: %q, retry: { max_attempts: 2, base_delay: 1ms, max_delay: 1ms } }\n", good.url("/pb?aff=7"), good.url(""), bad.url("/"))
	one, two := startPostern(t, config), startPostern(t, config)
	for _, p := range []*postern{one, two} {
		for i := range 20 {
			p.accept("POST", "/to/good?cid=SECRET", "SECRET", fmt.Sprintf("Postern-Event-Id: order-%d", i), "X-Api-Key: SECRET")
		}
		p.accept("POST", "/to/bad", "x")
		p.accept("POST", "/to/whole", "x")
		p.accept("POST", "/"+good.url("/ad-hoc"), "x")
	}
	for _, p := range []*postern{one, two} {
		p.eventually(patience, "sync to work", func() bool {
			var s struct{ Sync struct{ Connected bool } }
			p.api("GET", "status", "", &s)
			return s.Sync.Connected
		})
	}
	one.eventually(patience, "all rows to arrive", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status IN ('delivered', 'dead_letter')") == 46
	})
	for query, want := range map[string]int{
		"SELECT count(*) FROM webhook_queue WHERE status = 'delivered'":                                            44,
		"SELECT count(DISTINCT event_id) FROM webhook_queue WHERE status = 'delivered' AND event_id LIKE 'order%'": 20,
		"SELECT count(*) FROM webhook_queue WHERE status = 'dead_letter' AND last_error = 'http_503'":              2,
		"SELECT count(*) FROM endpoint_latency":                                                                    48,
		"SELECT count(DISTINCT endpoint_id) FROM webhook_queue":                                                    3,
		// An endpoint whose url is no more than an origin is the same for the fleet as ad hoc targets of that origin.
		"SELECT count(*) FROM webhook_queue WHERE endpoint_url = '" + good.url("") + "'": 4,
		"SELECT count(*) FROM webhook_queue WHERE payload IS NOT NULL":                   0,
		"SELECT count(*) FROM instances":                                                 2,
		"SELECT dead_letter FROM pipeline_status":                                        2,
	} {
		one.eventually(patience, fmt.Sprintf("%d by %s", want, query), func() bool { return ask[int](t, db, query) == want })
	}
	one.eventually(patience, "the fleet's health", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM endpoint_health") == 3
	})
	if url := ask[string](t, db, "SELECT endpoint_url FROM endpoint_health WHERE endpoint_url LIKE '%/pb'"); url != good.url("/pb") {
		t.Errorf("endpoint_url %q", url)
	}
	if dump := db.Dump(); strings.Contains(dump, "SECRET") || strings.Contains(dump, "aff=7") {
		t.Error("a query, header or body reached Postgres")
	}
}

// sync.payloads says whose bodies reach Postgres. Where it asks for all, a delivery that removes the body from the spool takes
// none away; where for those of dead letters, one that is sent again takes its body along.
func TestPayloadsReachPostgres(t *testing.T) {
	const payloads = "SELECT coalesce(string_agg(payload::text, ' ' ORDER BY payload::text), '') FROM webhook_queue"
	for setting, want := range map[string]string{
		"all":          `{"n": "dead"} {"n": "delivered"}`,
		"dead_letters": `{"n": "dead"}`,
		"none":         "",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			good, bad := newReceiver(t, nil), newReceiver(t, script(status(400)))
			// So long an interval that both have ended before the first row goes out.
			p := startPostern(t, strings.Replace(synced(db, ", payloads: "+setting), "200ms", "2s", 1))
			delivered := p.accept("POST", "/"+good.url("/"), `{"n":"delivered"}`)
			dead := p.accept("POST", "/"+bad.url("/"), `{"n":"dead"}`)
			p.waitState(delivered, "delivered", patience)
			p.waitState(dead, "dead_letter", patience)
			p.eventually(patience, "both to arrive", func() bool {
				return ask[bool](t, db, "SELECT to_regclass('webhook_queue') IS NOT NULL") && ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status IN ('delivered', 'dead_letter')") == 2
			})
			if got := ask[string](t, db, payloads); got != want {
				t.Errorf("payloads %s, want %s", got, want)
			}
			bad.setAnswer(script(status(200)))
			p.api("POST", "dead-letters/replay", "{}", nil)
			p.eventually(patience, "both to be delivered", func() bool {
				return ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == 2
			})
			if got := ask[string](t, db, payloads); got != want && setting == "all" || got != "" && setting != "all" {
				t.Errorf("payloads afterwards: %s", got)
			}
		})
	}
}

// What the fleet's view counts is what the instance counts, also of events that are on their way: each once.
func TestTheFleetCountsWhatTheInstanceDoes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	answer := make(chan struct{})
	r := newReceiver(t, func(int, request) reply {
		<-answer
		return status(500)
	})
	defer close(answer)
	// The attempts stay under way for as long as Postgres takes.
	p := startPostern(t, strings.Replace(synced(db, ""), "timeout: 30s", "timeout: 10m", 1))
	for range 6 {
		p.accept("POST", "/"+r.url("/"), "x")
	}
	r.wait(6, patience)
	p.accept("POST", "/"+r.url("/"), "x", "Postern-Delay: 1h")
	p.eventually(patience, "the view to count as the instance does", func() bool {
		var s struct {
			Pending, AwaitingRetry int
			InFlight               int `json:"in_flight"`
		}
		p.api("GET", "status", "", &s)
		if s.Pending != 1 || s.InFlight != 6 {
			t.Fatalf("the instance counts %+v", s)
		}
		return ask[bool](t, db, "SELECT to_regclass('pipeline_status') IS NOT NULL") && ask[int](t, db, "SELECT count(*) FROM webhook_queue") == 7 &&
			ask[bool](t, db, "SELECT pending = 1 AND awaiting_retry = 0 AND in_flight = 6 FROM pipeline_status")
	})
}

// Postgres away at the start, then there, then frozen: ingest and delivery do not notice, and all rows arrive.
func TestPostgresComesAndGoes(t *testing.T) {
	server := pgtest.Start(t)
	db := pgtest.On(t, server.DSN())
	must(t, server.Down())
	r := newReceiver(t, nil)
	p := startPostern(t, synced(db, ""))
	sent := 0
	deliver := func() {
		t.Helper()
		intime.Since(t, 5*time.Second, "20 events", func() {
			for range 20 {
				p.accept("POST", "/"+r.url("/"), "x")
			}
			sent += 20
			r.wait(sent, patience)
		})
	}
	arrived := func() bool {
		return ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == sent
	}
	deliver()
	must(t, server.Up())
	// Each try freezes a server that Postern has a connection to, with rows on their way.
	intime.Hold(t, 10*time.Second, "a stop in a black hole", func() time.Duration {
		p.eventually(patience, "the rows to arrive", func() bool {
			var s struct{ Sync struct{ Connected bool } }
			p.api("GET", "status", "", &s)
			return s.Sync.Connected && arrived()
		})
		must(t, server.Freeze())
		deliver()
		start := time.Now()
		if code := p.stop(patience); code != 0 {
			t.Errorf("exit code %d", code)
		}
		took := time.Since(start)
		must(t, server.Thaw())
		p.start()
		return took
	})
	p.eventually(patience, "all rows to arrive", arrived)
}

// Attempts are counted as ever while Postgres is away: exactly three, then a dead letter.
func TestAttemptsEndWithoutPostgres(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(503)))
	p := startPostern(t, fmt.Sprintf("targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 3, base_delay: 50ms, max_delay: 100ms } }\n"+
		"sync: { dsn: \"postgres://nobody@%s/none\", interval: 100ms }\n", freeAddr(t)))
	e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "dead_letter", patience)
	p.eventually(patience, "the trouble to be told", func() bool { return strings.Contains(p.log.String(), "sync waits") })
	if n := len(r.requests()); n != 3 || len(e.Attempts) != 3 || e.DeadReason != "exhausted" {
		t.Errorf("%d requests, %d attempts, %s", n, len(e.Attempts), e.DeadReason)
	}
}

// A wrong password hurts nobody, and a connection string that a reload corrects is used at once.
func TestConnectionStringIsCorrectedByReload(t *testing.T) {
	db := pgtest.New(t)
	r := newReceiver(t, nil)
	wrong := *db
	wrong.DSN = strings.Replace(db.DSN, "postgres://", "postgres://nobody-", 1)
	p := startPostern(t, synced(&wrong, ""))
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	status := func() (connected bool, text string) {
		var s struct {
			Sync struct {
				Connected bool
				Error     string
			}
		}
		p.api("GET", "status", "", &s)
		return s.Sync.Connected, s.Sync.Error
	}
	p.eventually(patience, "the trouble to be told", func() bool { _, text := status(); return text != "" })
	p.configure(synced(db, ""))
	p.reload()
	p.eventually(patience, "the row to arrive", func() bool {
		connected, _ := status()
		return connected && ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == 1
	})
}
