package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"postern/proxy/fleet"
	"postern/proxy/retry"
	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// now is when a test's events happen: now, so that they fall into the windows.
var now = time.Now().UTC().Truncate(time.Second)

// startNow takes the time anew: a test binary may run for minutes.
func startNow() { now = time.Now().UTC().Truncate(time.Second) }

// crowd is a made-up fleet on a schema of its own.
type crowd struct {
	t     *testing.T
	db    *pgtest.DB
	fleet *fleet.Fleet
	n     int
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	startNow()
	db := pgtest.New(t)
	c := &crowd{t: t, db: db, fleet: fleet.New(open(t, db, ""))}
	if err := c.instance(1).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, db *pgtest.DB, instance string) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), pgstore.Config{
		DSN: db.DSN, Schema: db.Schema, Instance: instance, Version: "1.2.3", Labels: map[string]string{"service": "checkout"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func instanceID(n int) string { return fmt.Sprintf("0190a6c0-7b2c-7def-8123-%012d", n) }

func (c *crowd) instance(n int) *pgstore.Store { return open(c.t, c.db, instanceID(n)) }

// alive says that instance n is, and how it sees endpoints.
func (c *crowd) alive(n int, urls ...string) {
	c.t.Helper()
	s := c.instance(n)
	if _, err := s.Heartbeat(c.t.Context(), pgstore.Heartbeat{Pending: 1, InFlight: 1, SpoolBytes: 1 << 20, BacklogRows: int64(n)}); err != nil {
		c.t.Fatal(err)
	}
	var list []pgstore.Health
	for _, url := range urls {
		list = append(list, pgstore.Health{EndpointName: url, EndpointURL: url, State: "closed", FailureThreshold: 10})
	}
	if err := s.WriteHealth(c.t.Context(), list); err != nil {
		c.t.Fatal(err)
	}
}

// write writes rows as instance 1, in one batch. Events have IDs of their own unless they are given one.
func (c *crowd) write(rows ...pgstore.Row) {
	c.t.Helper()
	for i := range rows {
		if rows[i].EventID == "" {
			c.n++
			rows[i].EventID = fmt.Sprint("event-", c.n)
		}
	}
	if err := c.instance(1).Write(c.t.Context(), rows); err != nil {
		c.t.Fatal(err)
	}
}

// event is one that was accepted that long ago and waits for its first attempt.
func event(url string, ago time.Duration) pgstore.Row {
	return pgstore.Row{
		CreatedAt: now.Add(-ago), Version: 1, EndpointName: url, EndpointURL: url, Status: "pending", MaxAttempts: 5, NextAttempt: now.Add(-ago),
	}
}

// delivered are n events that took that long, that long ago.
func delivered(url string, n int, took, ago time.Duration) (rows []pgstore.Row) {
	for range n {
		r := event(url, ago+took)
		r.Version, r.Status, r.Attempts, r.NextAttempt, r.DeliveredAt = 2, "delivered", 1, time.Time{}, now.Add(-ago)
		r.Attempt = &pgstore.Attempt{Number: 1, EndedAt: now.Add(-ago), Duration: took, StatusCode: 200}
		rows = append(rows, r)
	}
	return rows
}

// dead are n events that were given up, the last one that long ago, the others each step before.
func dead(url string, n int, ago, step time.Duration, status int, class string) (rows []pgstore.Row) {
	for i := range n {
		at := now.Add(-ago - time.Duration(i)*step)
		r := event(url, time.Since(at)+time.Minute)
		r.Version, r.Status, r.Attempts, r.NextAttempt, r.DeadReason = 2, "dead_letter", 5, time.Time{}, "exhausted"
		r.Attempt = &pgstore.Attempt{Number: 5, EndedAt: at, Duration: 10 * time.Millisecond, StatusCode: status, Error: class}
		rows = append(rows, r)
	}
	return rows
}

// usual is what the command line checks by when it is told nothing.
func usual() fleet.Thresholds {
	defaults := retry.Policy{MaxAttempts: 5, BaseDelay: 30 * time.Second, MaxDelay: time.Hour, MaxRetryAfter: time.Hour}
	return fleet.Thresholds{
		Since: 24 * time.Hour, DeadLetters: 1, DeadWindow: time.Hour, QueueAge: 30 * time.Minute, P95: 2 * time.Second, P95Factor: 4, MinSamples: 20,
		Windows: pgstore.Windows{Default: fleet.RetryWindow(defaults, 15*time.Second)},
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
