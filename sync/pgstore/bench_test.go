package pgstore_test

import (
	"fmt"
	"os"
	"strconv"
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

// attemptsInADay is what the views are measured at: POSTERN_BENCH_ATTEMPTS, 10,000,000 for the figures in docs/sync.md.
func attemptsInADay(b *testing.B) int {
	n := 1_000_000
	if text := os.Getenv("POSTERN_BENCH_ATTEMPTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

// fillADay fills the tables as four instances with 50 endpoints do in 24 hours; half of the attempts are one endpoint's.
func fillADay(b *testing.B, db *pgtest.DB, attempts int) {
	b.Helper()
	const uuid = `('0190a6c0-7b2c-7def-8123-00000000000' || g % 4)::uuid`
	db.Exec(`SET work_mem = '64MB';
		INSERT INTO endpoints (endpoint_url) SELECT 'https://partner-' || g || '.example' FROM generate_series(0, 49) g;
		INSERT INTO instances (instance_id) SELECT ` + uuid + ` FROM generate_series(0, 3) g;
		INSERT INTO instance_endpoint_health (instance_id, endpoint_id, endpoint_name) SELECT ` + uuid + `, e, 'n' || e FROM generate_series(0, 3) g, generate_series(1, 50) e;
		INSERT INTO endpoint_latency (instance_id, event_id, attempt, measured_at, endpoint_id, response_ms, status_code, error)
			SELECT ` + uuid + `, 'evt_0190a6c0-7b2c-7def-8123-' || lpad(g::text, 12, '0'), 1, now() - g * interval '24 hours' / ` + strconv.Itoa(attempts) + `,
				CASE WHEN random() < 0.5 THEN 1 ELSE 1 + (random() * 49)::integer END, (50 * power(random() + 1e-9, -0.6))::integer,
				CASE WHEN g % 50 = 0 THEN 503 ELSE 200 END, CASE WHEN g % 50 = 0 THEN 'http_503' END
			FROM generate_series(1, ` + strconv.Itoa(attempts) + `) g;
		INSERT INTO webhook_queue (instance_id, event_id, created_at, endpoint_id, endpoint_url, status, attempt_count, max_attempts, endpoint_name, version,
				last_error, last_status_code, dead_at, delivered_at, last_response_ms)
			SELECT instance_id, event_id, measured_at, endpoint_id, 'https://partner-' || endpoint_id - 1 || '.example',
				CASE id % 1000 WHEN 0 THEN 'dead_letter' WHEN 1 THEN 'failed' WHEN 2 THEN 'pending' ELSE 'delivered' END, 1, 5, 'n', 1,
				error, status_code, CASE WHEN id % 1000 = 0 THEN measured_at END, measured_at, response_ms FROM endpoint_latency`)
	for _, span := range []string{"minute", "hour"} {
		db.Exec(`INSERT INTO endpoint_` + span + `s (instance_id, endpoint_id, ` + span + `, attempts, delivered, delivered_ms, buckets, counts)
			SELECT instance_id, endpoint_id, m, sum(n), sum(d), sum(ms), array_agg(b ORDER BY b), array_agg(n ORDER BY b) FROM (
				SELECT instance_id, endpoint_id, date_trunc('` + span + `', measured_at) AS m, latency_bucket(response_ms) AS b, count(*) AS n,
					count(*) FILTER (WHERE error IS NULL) AS d, coalesce(sum(response_ms) FILTER (WHERE error IS NULL), 0) AS ms
				FROM endpoint_latency GROUP BY 1, 2, 3, 4) s GROUP BY 1, 2, 3`)
	}
	db.Exec("VACUUM ANALYZE")
}

// BenchmarkViews is what a person waits for.
func BenchmarkViews(b *testing.B) {
	server := pgtest.Start(b, "shared_buffers=1GB", "max_wal_size=8GB")
	db := pgtest.On(b, server.DSN())
	if err := open(b, db).Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	fillADay(b, db, attemptsInADay(b))
	for name, query := range map[string]string{
		"pipeline_status":      `SELECT * FROM pipeline_status`,
		"endpoint_health":      `SELECT * FROM endpoint_health`,
		"slow_endpoints":       `SELECT * FROM slow_endpoints`,
		"dead_letter_analysis": `SELECT * FROM dead_letter_analysis`,
		"dead_letter_findings": `SELECT * FROM dead_letter_findings`,
		"percentiles/busy":     `SELECT * FROM endpoint_percentiles('https://partner-0.example', '24 hours')`,
		"percentiles/usual":    `SELECT * FROM endpoint_percentiles('https://partner-7.example', '20 hours')`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				db.Rows(query)
			}
		})
	}
}
