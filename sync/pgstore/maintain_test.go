package pgstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/sync/pgstore"
	"postern/sync/pgtest/intime"
)

const partitions = `SELECT count(*) FROM pg_inherits WHERE inhparent = '%s'::regclass`

func maintain(t *testing.T, s *pgstore.Store, want bool) {
	t.Helper()
	held, err := s.Maintain(t.Context())
	if err != nil || held != want {
		t.Fatalf("maintain: held %v, %v; want %v", held, err, want)
	}
}

// at moves an attempted event to another time.
func at(r pgstore.Row, when time.Time) pgstore.Row {
	r.CreatedAt = when.Add(-time.Minute)
	r.Attempt.EndedAt = when
	if r.Status == "delivered" {
		r.DeliveredAt = when
	}
	return r
}

func keep(d time.Duration) func(*pgstore.Config) {
	return func(c *pgstore.Config) { c.Retention = d }
}

func TestPartitionsAreMadeAhead(t *testing.T) {
	s, db := migrated(t)
	for _, table := range []string{"webhook_queue", "endpoint_latency", "endpoint_minutes"} {
		same(t, table, db.Value(fmt.Sprintf(partitions, table)), 6) // yesterday, today, three ahead, and the default one
		day := time.Now().UTC().AddDate(0, 0, 3).Format("20060102")
		same(t, table+" in three days", db.Value(`SELECT count(*) FROM pg_class WHERE relname = '`+table+`_p`+day+`' AND relnamespace = current_schema::regnamespace`), 1)
	}
	db.Exec(`DROP TABLE endpoint_latency_p` + time.Now().UTC().AddDate(0, 0, 3).Format("20060102"))
	maintain(t, s, true)
	same(t, "made again", db.Value(fmt.Sprintf(partitions, "endpoint_latency")), 6)
}

// TestRowsOfAnyTimeFindAPlace: late ones, and those of a clock that is wrong by years.
func TestRowsOfAnyTimeFindAPlace(t *testing.T) {
	s, db := migrated(t)
	late := now.AddDate(0, 0, -5)
	write(t, s, at(delivered("late", time.Millisecond), late), at(delivered("future", time.Millisecond), now.AddDate(20, 0, 0)), delivered("now", time.Millisecond))
	write(t, s, at(delivered("late", time.Millisecond), late))
	same(t, "in the default partition", db.Value(`SELECT count(*) FROM endpoint_latency_default`), 2)
	maintain(t, s, true)
	same(t, "afterwards", db.Value(`SELECT count(*) FROM endpoint_latency_default`), 1)
	same(t, "the late one", db.Value(`SELECT tableoid::regclass FROM endpoint_latency WHERE event_id = 'late'`), "endpoint_latency_p"+late.Format("20060102"))
	write(t, s, at(delivered("late", time.Millisecond), late))
	same(t, "attempts", db.Value(`SELECT count(*) FROM endpoint_latency`), 3)
	same(t, "counted", db.Value(`SELECT sum(attempts) FROM endpoint_hours`), 3)
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 3)
}

func TestRetention(t *testing.T) {
	s, db := migrated(t, keep(48*time.Hour))
	old := now.Truncate(24 * time.Hour).Add(-84 * time.Hour) // noon, four days ago
	waiting := at(tried("waiting", 1, "failed", 500, "http_500", time.Millisecond), old)
	write(t, s, at(delivered("old", 700*time.Millisecond), old), waiting, at(tried("dead", 1, "dead_letter", 404, "http_404", time.Millisecond), old),
		delivered("new", 3*time.Millisecond))
	if _, err := s.Heartbeat(t.Context(), pgstore.Heartbeat{}); err != nil {
		t.Fatal(err)
	}
	db.Exec(`SELECT partition_for(p, '` + old.Format("2006-01-02") + `') FROM unnest(ARRAY['webhook_queue', 'endpoint_latency', 'endpoint_minutes']) p`)
	same(t, "before", db.Value(fmt.Sprintf(partitions, "webhook_queue")), 7)
	db.Exec(`UPDATE webhook_queue SET updated_at = created_at WHERE event_id <> 'dead'`)
	maintain(t, s, true)
	for _, table := range []string{"webhook_queue", "endpoint_latency", "endpoint_minutes"} {
		same(t, table, db.Value(fmt.Sprintf(partitions, table)), 6)
	}
	same(t, "attempts", db.Rows(`SELECT event_id FROM endpoint_latency`), "[[new]]")
	same(t, "what waits, and what died lately, stays", db.Rows(`SELECT event_id FROM webhook_queue ORDER BY 1`), "[[dead] [new] [waiting]]")
	same(t, "the hours remember", db.Rows(`SELECT sample_count, exact FROM endpoint_percentiles('`+partner+`', '120 hours')`), "[[4 f]]")
	same(t, "the last hours are exact", db.Rows(`SELECT sample_count, exact FROM endpoint_percentiles('`+partner+`', '24 hours')`), "[[1 t]]")

	db.Exec(`UPDATE webhook_queue SET updated_at = now() - interval '3 days' WHERE event_id = 'dead'; UPDATE endpoint_hours SET hour = hour - interval '30 days'`)
	maintain(t, s, true)
	same(t, "later", db.Rows(`SELECT event_id FROM webhook_queue ORDER BY 1`), "[[new] [waiting]]")
	same(t, "hours", db.Value(`SELECT count(*) FROM endpoint_hours`), 0)
	db.Exec(`UPDATE instances SET heartbeat_at = now() - interval '3 days'`) // nobody will ever finish it
	maintain(t, s, true)
	maintain(t, s, true)
	same(t, "of a gone instance", db.Rows(`SELECT event_id FROM webhook_queue ORDER BY 1`), "[[new]]")
	same(t, "instances", db.Value(`SELECT count(*) FROM instances`), 0)
}

func TestOneLooksAfterTheTables(t *testing.T) {
	a, db := migrated(t)
	b := open(t, db, instance(instanceB))
	maintain(t, a, true)
	maintain(t, b, false)
	maintain(t, a, true)
	db.Exec(`UPDATE maintenance SET expires_at = now() - interval '1 second'`)
	maintain(t, b, true)
	maintain(t, a, false)
}

func TestManyWantTheLease(t *testing.T) {
	_, db := migrated(t)
	var wg sync.WaitGroup
	var held atomic.Int32
	for i := range 20 {
		s := open(t, db, instance(fmt.Sprintf("0190a6c0-7b2c-7def-8123-%012d", i)))
		wg.Go(func() {
			got, err := s.Maintain(t.Context())
			if err != nil {
				t.Error(err)
			}
			if got {
				held.Add(1)
			}
		})
	}
	wg.Wait()
	if held.Load() != 1 {
		t.Errorf("%d have it", held.Load())
	}
}

// TestAReaderHoldsNothingUp: while somebody reads for long, maintenance gives up after a moment and writing goes on.
func TestAReaderHoldsNothingUp(t *testing.T) {
	s, db := migrated(t, keep(48*time.Hour))
	db.Exec(`SELECT partition_for('endpoint_latency', (now() - interval '5 days')::date)`)
	release := db.Hold(`SELECT count(*) FROM endpoint_latency`)
	intime.Since(t, 5*time.Second, "maintenance beside a reader", func() {
		if _, err := s.Maintain(t.Context()); err == nil {
			t.Error("maintenance beside a reader gives up nothing")
		}
	})
	write(t, s, delivered("a", 1))
	release()
	maintain(t, s, true)
}

// TestAClockThatWasAhead: while the server's clock was a year ahead somebody took the lease, sent a heartbeat and dropped
// history. None of it holds anything up when the clock is right again.
func TestAClockThatWasAhead(t *testing.T) {
	s, db := migrated(t)
	write(t, s, delivered("a", time.Millisecond))
	report(t, s)
	report(t, open(t, db, instance(instanceB)))
	db.Exec(`UPDATE maintenance SET holder = '` + instanceB + `', expires_at = now() + interval '1 year', raw_from = now() + interval '11 months';
		UPDATE instances SET heartbeat_at = now() + interval '1 year' WHERE instance_id = '` + instanceB + `'`)
	same(t, "alive", db.Rows(`SELECT instance_id FROM live_instances`), "[["+instanceA+"]]")
	maintain(t, s, true)
	same(t, "raw history from now on", db.Value(`SELECT raw_from <= now() FROM maintenance`), "t")
	same(t, "exact", db.Value(`SELECT exact FROM endpoint_percentiles('`+partner+`', '0 seconds')`), "t")
}
