package syncer_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/spool"
	"postern/spool/spooltest"
	"postern/sync/pgstore"
	"postern/sync/pgtest"
	"postern/sync/pgtest/intime"
	"postern/sync/syncer"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const partner = "https://partner.example"

// whole is a spool, a syncer and a real Postgres.
type whole struct {
	t     *testing.T
	spool *spool.Spool
	db    *pgtest.DB
	*syncer.Syncer
	dsn    atomic.Value
	limit  time.Duration // of what the syncer asks of Postgres
	outbox syncer.Outbox // the spool, where the test puts nothing in between
	cancel context.CancelFunc
	ended  chan struct{}
}

func newWhole(t *testing.T, db *pgtest.DB, change ...func(*spool.Config)) *whole {
	t.Helper()
	cfg := spooltest.Config(t)
	cfg.Outbox = true
	for _, c := range change {
		c(&cfg)
	}
	w := &whole{t: t, spool: spooltest.Open(t, cfg), db: db, limit: 2 * time.Second}
	w.dsn.Store(db.DSN)
	w.outbox = w.spool
	return w
}

func (w *whole) run() {
	w.t.Helper()
	w.Syncer = syncer.New(syncer.Config{Interval: 20 * time.Millisecond}, syncer.Parts{
		Outbox: w.outbox,
		Open: func(ctx context.Context) (syncer.Store, error) {
			return pgstore.Open(ctx, pgstore.Config{DSN: w.dsn.Load().(string), Schema: w.db.Schema, Instance: w.spool.InstanceID(), Timeout: w.limit})
		},
		Endpoint: func(name string) (syncer.Endpoint, bool) {
			return syncer.Endpoint{URL: "https://named.example/pb", MaxAttempts: 5}, true
		},
		Events: w.spool,
		Snapshot: func() syncer.Snapshot {
			return syncer.Snapshot{Heartbeat: pgstore.Heartbeat{DroppedRows: w.spool.Stats().HistoryDropped}, Health: []pgstore.Health{{EndpointName: partner, State: "open", ConsecutiveFailures: 10}}}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.ended = cancel, make(chan struct{})
	go func() {
		defer close(w.ended)
		w.Run(ctx)
	}()
	w.t.Cleanup(func() { w.stop() })
}

// stop ends the syncer and returns how long that took.
func (w *whole) stop() time.Duration {
	began := time.Now()
	w.cancel()
	<-w.ended
	return time.Since(began)
}

// attempt accepts an event and ends its first attempt.
func (w *whole) attempt(id string, code int, change ...func(*spool.Event)) {
	w.t.Helper()
	ev := &spool.Event{ID: id, Endpoint: partner, Target: partner + "/x?secret=QSECRET", Method: "POST", AcceptedAt: time.Now(),
		Headers: []spool.Header{{Name: "Authorization", Value: "Bearer HSECRET"}}, Body: []byte("BSECRET")}
	for _, c := range change {
		c(ev)
	}
	if _, err := w.spool.Append(w.t.Context(), ev); err != nil {
		w.t.Fatal(err)
	}
	leases, _, err := w.spool.Lease(ev.Endpoint, time.Now(), 1, 1<<20)
	if err != nil || len(leases) != 1 {
		w.t.Fatalf("%d leases, %v", len(leases), err)
	}
	a := &spool.Attempt{Number: 1, StartedAt: time.Now(), Duration: 5 * time.Millisecond, StatusCode: code}
	r := spool.Result{Attempt: a, Verdict: spool.VerdictDelivered}
	if code != 200 {
		a.Error = fmt.Sprint("http_", code)
		r.Verdict, r.Reason = spool.VerdictDead, spool.ReasonPermanent
		r.Answer = &spool.Answer{StatusCode: code, Body: []byte("NUL\x00 \\u0000 \xff ASECRET"), Location: "https://u:USERINFO@x/?LSECRET"}
	}
	done := make(chan error, 1)
	r.Done = func(err error) { done <- err }
	w.spool.Finish(leases[0], r)
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
}

// await waits until a condition holds that something else brings about.
func (w *whole) await(what string, limit time.Duration, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("%s: not within %v; status %+v", what, limit, w.Status())
		}
	}
}

func (w *whole) drained() {
	w.t.Helper()
	w.await("everything is in Postgres", 2*time.Minute, func() bool { return w.spool.Stats().OutboxRows == 0 && w.Status().Connected })
}

func (w *whole) same(what, sql, want string) {
	w.t.Helper()
	if got := fmt.Sprint(w.db.Rows(sql)); got != want {
		w.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestPoisonRow(t *testing.T) {
	w := newWhole(t, pgtest.New(t))
	w.run()
	w.attempt("first", 200)
	w.drained()
	w.db.Exec(`ALTER TABLE endpoint_latency ADD CONSTRAINT no_teapots CHECK (status_code <> 418)`)
	w.stop()
	for i := range 500 {
		code := 200
		if i == 321 {
			code = 418
		}
		w.attempt(fmt.Sprint("e", i), code)
	}
	w.run()
	w.drained()
	w.same("attempts", `SELECT count(*) FROM endpoint_latency`, "[[500]]")
	rows, total, err := w.spool.Refused(10)
	if err != nil || total != 1 || rows[0].EventID != "e321" || !strings.Contains(rows[0].Cause, "no_teapots") || w.Status().RejectedRows != 1 {
		t.Errorf("refused: %+v, %d, %v; status %+v", rows, total, err, w.Status())
	}
	w.db.Exec(`ALTER TABLE endpoint_latency DROP CONSTRAINT no_teapots`)
	if n, err := w.spool.RetryRefused(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	w.drained()
	w.same("afterwards", `SELECT status, last_status_code FROM webhook_queue WHERE event_id = 'e321'`, "[[dead_letter 418]]")
	w.same("attempts", `SELECT count(*), (SELECT sum(attempts) FROM endpoint_hours) FROM endpoint_latency`, "[[501 501]]")
}

// amnesiac is an outbox whose first mark is lost, as a kill between the commit there and the mark here loses it.
type amnesiac struct {
	*spool.Spool
	lost atomic.Bool
}

func (a *amnesiac) OutboxDone(upTo uint64) error {
	if a.lost.CompareAndSwap(false, true) {
		return nil
	}
	return a.Spool.OutboxDone(upTo)
}

func TestKillBetweenCommitAndMark(t *testing.T) {
	w := newWhole(t, pgtest.New(t))
	w.outbox = &amnesiac{Spool: w.spool}
	w.attempt("a", 200)
	w.attempt("b", 404)
	w.run()
	w.drained()
	if n := w.Status().RowsTotal; n < 8 {
		t.Errorf("%d rows were sent, want the four twice", n)
	}
	w.same("events", `SELECT event_id, status, version FROM webhook_queue ORDER BY 1`, "[[a delivered 2] [b dead_letter 2]]")
	w.same("counts", `SELECT count(*), (SELECT sum(attempts) FROM endpoint_minutes), (SELECT sum(attempts) FROM endpoint_hours) FROM endpoint_latency`, "[[2 2 2]]")
}

// TestNothingPrivateLeaves dumps the whole database and looks for what must not be in it.
func TestNothingPrivateLeaves(t *testing.T) {
	server := pgtest.Start(t)
	w := newWhole(t, pgtest.On(t, server.DSN()))
	w.run()
	w.attempt("adhoc", 500)
	w.attempt("named", 500, func(ev *spool.Event) {
		ev.Endpoint, ev.Named, ev.Target = "partner-a", true, "/extra/PATH?cid=CLICKID"
	})
	w.drained()
	w.stop()
	dump := server.Dump(t, w.db.Schema)
	for _, want := range []string{"adhoc", "named", partner, "https://named.example/pb", "partner-a", "http_500"} {
		if !strings.Contains(dump, want) {
			t.Errorf("%q is not in the dump", want)
		}
	}
	for _, secret := range []string{"QSECRET", "HSECRET", "BSECRET", "ASECRET", "LSECRET", "USERINFO", "CLICKID", "cid=", "Authorization", "Bearer"} {
		if strings.Contains(dump, secret) {
			t.Errorf("%q is in the dump", secret)
		}
	}
}

// TestOutages: nothing that happens to Postgres holds up whoever appends and finishes; everything arrives once.
func TestOutages(t *testing.T) {
	server := pgtest.Start(t)
	db := pgtest.On(t, server.DSN())
	w := newWhole(t, db)
	w.limit = 10 * time.Minute // whoever waited for Postgres would wait for this long
	n := 0
	busy := func(what string, trouble, mend func() error) {
		t.Helper()
		intime.Hold(t, 10*time.Second, what+": catching up", func() time.Duration {
			if err := trouble(); err != nil {
				t.Fatal(err)
			}
			slowest := time.Duration(0)
			for range 50 {
				began := time.Now()
				w.attempt(fmt.Sprint("e", n), 200)
				slowest = max(slowest, time.Since(began))
				n++
			}
			if slowest > time.Minute {
				t.Errorf("%s: an event took %v", what, slowest)
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.drained()
			took := time.Since(began)
			w.same(what, `SELECT count(*), (SELECT count(*) FROM endpoint_latency), (SELECT sum(attempts) FROM endpoint_hours) FROM webhook_queue`, fmt.Sprintf("[[%d %[1]d %[1]d]]", n))
			return took
		})
	}
	none := func() error { return nil }
	busy("absent at the start", func() error {
		if w.Syncer != nil {
			w.stop()
		}
		err := server.Down()
		w.run() // one that was never connected
		return err
	}, server.Up)
	busy("terminated", func() error {
		db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postern'`)
		return nil
	}, none)
	busy("restarted", server.Down, server.Up)
	busy("frozen", server.Freeze, server.Thaw)
	password := "pgtest"
	busy("locked out", func() error {
		before := ":" + password + "@"
		password += "x"
		db.Exec(`ALTER ROLE postgres PASSWORD '` + password + `'`)
		db.DSN = strings.Replace(db.DSN, before, ":"+password+"@", 1)
		w.Reopen()
		return nil
	}, func() error {
		w.dsn.Store(db.DSN)
		w.Reopen()
		return nil
	})
	busy("a table dropped", func() error { db.Exec(`DROP TABLE endpoint_hours`); return nil }, func() error {
		db.Exec(`CREATE TABLE endpoint_hours (LIKE endpoint_minutes INCLUDING ALL); ALTER TABLE endpoint_hours RENAME minute TO hour;
			INSERT INTO endpoint_hours SELECT instance_id, endpoint_id, date_trunc('hour', min(minute)), sum(attempts), 0, 0, '{}', '{}' FROM endpoint_minutes GROUP BY 1, 2`)
		return nil
	})
}

// TestStopInABlackHole: the last flush into a frozen server ends within its limit, and the rows wait for the next start.
func TestStopInABlackHole(t *testing.T) {
	server := pgtest.Start(t)
	w := newWhole(t, pgtest.On(t, server.DSN()))
	w.attempt("a", 200)
	events := 1
	// Each try freezes a server that the syncer has a connection to.
	intime.Hold(t, 6*time.Second, "the stop", func() time.Duration {
		w.run()
		w.drained()
		if err := server.Freeze(); err != nil {
			t.Fatal(err)
		}
		w.attempt(fmt.Sprint("b", events), 200)
		events++
		took := w.stop()
		if n := w.spool.Stats().OutboxRows; n != 2 {
			t.Errorf("%d rows wait", n)
		}
		if err := server.Thaw(); err != nil {
			t.Fatal(err)
		}
		return took
	})
	w.run()
	w.drained()
	w.same("events", `SELECT count(*) FROM webhook_queue`, fmt.Sprintf("[[%d]]", events))
}

// TestABacklogThatWasTooLong: the rows that told the end of the first events are dropped, and their end is known all the
// same.
func TestABacklogThatWasTooLong(t *testing.T) {
	w := newWhole(t, pgtest.New(t), func(c *spool.Config) { c.OutboxMaxBytes = 20_000 })
	w.run()
	for _, id := range []string{"early", "deleted"} {
		ev := &spool.Event{ID: id, Endpoint: "https://early.example", Target: "https://early.example/", Method: "GET", AcceptedAt: time.Now()}
		if _, err := w.spool.Append(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	w.drained()
	w.stop()
	w.same("accepted", `SELECT count(*) FROM webhook_queue WHERE status = 'pending'`, "[[2]]")
	if err := w.spool.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	leases, _, err := w.spool.Lease("https://early.example", time.Now(), 1, 1<<20)
	if err != nil || len(leases) != 1 {
		t.Fatal(len(leases), err)
	}
	done := make(chan error, 1)
	w.spool.Finish(leases[0], spool.Result{Attempt: &spool.Attempt{Number: 1, StartedAt: time.Now(), StatusCode: 200}, Verdict: spool.VerdictDelivered, Done: func(err error) { done <- err }})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		w.attempt(fmt.Sprint("e", i), 200)
	}
	if w.spool.Stats().HistoryDropped == 0 {
		t.Fatal("nothing was dropped")
	}
	w.run()
	w.await("the ends of the first events", 2*time.Minute, func() bool {
		return fmt.Sprint(w.db.Rows(`SELECT event_id, status FROM webhook_queue WHERE endpoint_url = 'https://early.example'`)) == "[[early delivered]]"
	})
	w.same("nothing is unfinished", `SELECT count(*) FROM webhook_queue WHERE status <> 'delivered'`, "[[0]]")
}

func TestHealthArrivesAndGoesAtTheStop(t *testing.T) {
	w := newWhole(t, pgtest.New(t))
	w.run()
	w.await("health", 2*time.Minute, func() bool { return w.Status().Connected })
	w.await("health", 2*time.Minute, func() bool {
		return fmt.Sprint(w.db.Rows(`SELECT endpoint_url, state, consecutive_failures, instances FROM endpoint_health`)) == "[["+partner+" open 10 1]]"
	})
	w.attempt("last", 200)
	w.stop()
	w.same("the last flush", `SELECT status FROM webhook_queue`, "[[delivered]]")
	w.same("health", `SELECT state, instances FROM endpoint_health`, "[[closed 0]]")
}
