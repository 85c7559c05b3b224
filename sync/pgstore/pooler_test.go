package pgstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// TestThroughATransactionPooler does everything that a store does, from thirty instances over two server connections:
// what one transaction leaves behind on its connection, the next one meets.
func TestThroughATransactionPooler(t *testing.T) {
	if pgtest.FindPooler() == "" {
		t.Skip("no pgbouncer was found; .ci/postgres installs one")
	}
	server := pgtest.Start(t)
	db := pgtest.On(t, server.DSN())
	through := server.Pooler(t)
	var wg sync.WaitGroup
	for i := range 30 {
		s := open(t, db, instance(fmt.Sprintf("0190a6c0-7b2c-7def-8123-%012d", i)), func(c *pgstore.Config) { c.DSN, c.Timeout = through, time.Minute })
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
				return
			}
			for n := range 5 {
				if err := s.Write(t.Context(), []pgstore.Row{delivered(fmt.Sprint("a", n), time.Millisecond), tried(fmt.Sprint("b", n), 1, "failed", 500, "http_500", 1)}); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Heartbeat(t.Context(), pgstore.Heartbeat{}); err != nil {
				t.Error(err)
			}
			if err := s.WriteHealth(t.Context(), []pgstore.Health{health("open", i)}); err != nil {
				t.Error(err)
			}
			if _, err := s.Maintain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 300)
	same(t, "counted", db.Value(`SELECT sum(attempts) FROM endpoint_hours`), 300)
	same(t, "health", db.Rows(`SELECT state, consecutive_failures, instances FROM endpoint_health`), "[[open 29 30]]")
}
