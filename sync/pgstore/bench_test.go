package pgstore_test

import (
	"fmt"
	"testing"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// history makes n rows as a busy instance's outbox has them: events delivered at once, accepted and tried in one batch,
// spread over 20 endpoints; one of twenty fails first.
func history(from, n int) (rows []pgstore.Row) {
	took := heavyTailed(n, uint64(from))
	for i := range n {
		url := fmt.Sprintf("https://partner-%d.example", i%20)
		id := fmt.Sprintf("evt_0190a6c0-7b2c-7def-8123-%012d", from+i)
		r := delivered(id, took[i])
		if i%20 == 0 {
			r = tried(id, 1, "failed", 503, "http_503", took[i])
		}
		r.EndpointName, r.EndpointURL = url, url
		rows = append(rows, r)
	}
	return rows
}

// BenchmarkWrite is one instance into a local server that syncs its log: attempt rows per second.
func BenchmarkWrite(b *testing.B) {
	server := pgtest.Start(b, "fsync=on")
	for _, size := range []int{500, 2000, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			db := pgtest.On(b, server.DSN())
			s := open(b, db)
			if err := s.Migrate(b.Context()); err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				b.StopTimer()
				rows := history(n, size)
				b.StartTimer()
				write(b, s, rows...)
				n += size
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "attempts/s")
		})
	}
}
