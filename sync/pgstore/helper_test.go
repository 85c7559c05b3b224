package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	instanceA = "0190a6c0-7b2c-7def-8123-00000000000a"
	instanceB = "0190a6c0-7b2c-7def-8123-00000000000b"
	partner   = "https://partner.example"
)

// open opens a store on a schema without migrating it.
func open(t testing.TB, db *pgtest.DB, change ...func(*pgstore.Config)) *pgstore.Store {
	t.Helper()
	cfg := pgstore.Config{DSN: db.DSN, Schema: db.Schema, Instance: instanceA, Version: "test"}
	for _, c := range change {
		c(&cfg)
	}
	s, err := pgstore.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// migrated opens a store on a new schema that is ready.
func migrated(t testing.TB, change ...func(*pgstore.Config)) (*pgstore.Store, *pgtest.DB) {
	t.Helper()
	db := pgtest.New(t)
	s := open(t, db, change...)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db
}

func instance(id string) func(*pgstore.Config) {
	return func(c *pgstore.Config) { c.Instance = id }
}

func write(t testing.TB, s *pgstore.Store, rows ...pgstore.Row) {
	t.Helper()
	if err := s.Write(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

// now is when the tests' events were accepted: now, so that they fall into the views' windows.
var now = time.Now().UTC().Truncate(time.Second)

// pending is an event as it is accepted.
func pending(id string) pgstore.Row {
	return pgstore.Row{
		EventID: id, CreatedAt: now.Add(-time.Minute), Version: 1, EndpointName: partner, EndpointURL: partner, Status: "pending",
		MaxAttempts: 5, NextAttempt: now,
	}
}

// tried is an event after attempt number n, which ended with that status and class, and took that long.
func tried(id string, n int, status string, code int, class string, took time.Duration) pgstore.Row {
	r := pending(id)
	r.Version, r.Status, r.Attempts = uint64(n+1), status, n
	r.Attempt = &pgstore.Attempt{Number: n, EndedAt: now.Add(time.Duration(n) * time.Second), Duration: took, StatusCode: code, Error: class}
	switch status {
	case "delivered":
		r.NextAttempt, r.DeliveredAt = time.Time{}, r.Attempt.EndedAt
	case "dead_letter":
		r.NextAttempt, r.DeadReason = time.Time{}, "exhausted"
	default:
		r.NextAttempt = r.Attempt.EndedAt.Add(time.Minute)
	}
	return r
}

func delivered(id string, took time.Duration) pgstore.Row {
	return tried(id, 1, "delivered", 200, "", took)
}

func same(t *testing.T, what string, got any, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
