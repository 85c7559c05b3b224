package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// roomy are settings for a day of 10 million attempts: a machine that keeps so many would not leave Postgres at the 128 MB
// that it takes by default. What is filled in need not survive a crash.
var roomy = []string{
	"fsync=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=1GB", "max_wal_size=8GB", "wal_level=minimal", "max_wal_senders=0",
}

// fillDay makes a day of attempts inside Postgres, as four instances with 50 endpoints would have written them: half of
// the attempts are one endpoint's, five endpoints are slow, one attempt of 50 fails, and of a thousand events one is a dead letter, one waits for its
// next attempt and one for its first. $N is the number of attempts.
var fillDay = []string{
	// What is only measured need not be logged; for whoever reads it is the same.
	`DO $$ DECLARE t regclass; BEGIN
		FOR t IN SELECT oid FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relispartition AND relkind = 'r' LOOP
			EXECUTE format('ALTER TABLE %s SET UNLOGGED', t);
		END LOOP;
	END $$`,
	`INSERT INTO endpoints (endpoint_url) SELECT 'https://partner-' || g || '.example' FROM generate_series(0, 49) g;
	INSERT INTO instances (instance_id) SELECT ('0190a6c0-7b2c-7def-8123-00000000000' || g)::uuid FROM generate_series(0, 3) g;
	INSERT INTO instance_endpoint_health (instance_id, endpoint_id, endpoint_name)
		SELECT ('0190a6c0-7b2c-7def-8123-00000000000' || g)::uuid, e, 'n' || e FROM generate_series(0, 3) g, generate_series(1, 50) e`,
	`INSERT INTO endpoint_latency (instance_id, event_id, attempt, measured_at, endpoint_id, response_ms, status_code, error)
		SELECT ('0190a6c0-7b2c-7def-8123-00000000000' || g % 4)::uuid, 'evt_0190a6c0-7b2c-7def-8123-' || lpad(g::text, 12, '0'), 1,
			now() - ($N - g) * interval '24 hours' / $N, e, (CASE WHEN e % 10 = 0 THEN 500 ELSE 50 END * power(random() + 1e-9, -0.6))::integer,
			CASE WHEN g % 10000 = 0 THEN 401 WHEN g % 50 = 0 THEN 503 ELSE 200 END,
			CASE WHEN g % 10000 = 0 THEN 'http_401' WHEN g % 50 = 0 THEN 'http_503' END
		FROM (SELECT g, CASE WHEN random() < 0.5 THEN 1 ELSE 2 + (random() * 49 - 0.5)::integer END AS e FROM generate_series(1, $N) g) s`,
	`INSERT INTO webhook_queue (instance_id, event_id, created_at, endpoint_id, endpoint_url, endpoint_name, status, attempt_count, max_attempts, version,
			last_error, last_status_code, last_response_ms, last_attempt_at, dead_at, delivered_at, next_attempt_at)
		SELECT instance_id, event_id, measured_at, endpoint_id, 'https://partner-' || endpoint_id - 1 || '.example', 'n' || endpoint_id,
			s, 1, 5, 2, error, status_code, response_ms, measured_at, CASE WHEN s = 'dead_letter' THEN measured_at END,
			CASE WHEN s = 'delivered' THEN measured_at END, CASE WHEN s IN ('failed', 'pending') THEN now() END
		FROM (SELECT *, CASE id % 1000 WHEN 0 THEN 'dead_letter' WHEN 1 THEN 'failed' WHEN 2 THEN 'pending' ELSE 'delivered' END AS s FROM endpoint_latency) l`,
	`INSERT INTO endpoint_minutes (instance_id, endpoint_id, minute, attempts, delivered, delivered_ms, buckets, counts)
		SELECT instance_id, endpoint_id, m, sum(n), sum(d), sum(ms), array_agg(b ORDER BY b), array_agg(n ORDER BY b) FROM (
			SELECT instance_id, endpoint_id, date_trunc('minute', measured_at) AS m, latency_bucket(response_ms) AS b, count(*) AS n,
				count(*) FILTER (WHERE error IS NULL) AS d, coalesce(sum(response_ms) FILTER (WHERE error IS NULL), 0) AS ms
			FROM endpoint_latency GROUP BY 1, 2, 3, 4) s GROUP BY 1, 2, 3`,
	`INSERT INTO endpoint_hours (instance_id, endpoint_id, hour, attempts, delivered, delivered_ms, buckets, counts)
		SELECT instance_id, endpoint_id, h, sum(n), sum(d), sum(ms), array_agg(b ORDER BY b), array_agg(n ORDER BY b) FROM (
			SELECT instance_id, endpoint_id, date_trunc('hour', measured_at, 'UTC') AS h, latency_bucket(response_ms) AS b, count(*) AS n,
				count(*) FILTER (WHERE error IS NULL) AS d, coalesce(sum(response_ms) FILTER (WHERE error IS NULL), 0) AS ms
			FROM endpoint_latency GROUP BY 1, 2, 3, 4) s GROUP BY 1, 2, 3`,
	// What autovacuum would have done by now is done, and all four are alive for as long as views are measured.
	`VACUUM ANALYZE`, `UPDATE instances SET heartbeat_at = now() + interval '1 minute'`,
}

// question is one query that a person waits for, and the answer that shows that it did its work.
type question struct {
	name, query, check, want, what string
	aim                            float64 // milliseconds; 0: none
}

// questions are the views, and percentiles of an endpoint that is busy (merged) and of one that is not (exact).
// While the day is made its first hour becomes older than 24 of them, in part.
func (l *lab) questions() []question {
	usual := "of one endpoint, %s attempts"
	all := func(view string) string { return "SELECT * FROM " + view }
	merged := `SELECT * FROM endpoint_percentiles('https://partner-0.example', '24 hours')`
	exact := `SELECT * FROM endpoint_percentiles('https://partner-7.example', '20 hours')`
	return []question{
		{name: "percentiles, merged", query: merged, check: `exact`, want: "f", what: fmt.Sprintf(usual, number(float64(l.sizes.day/2))) + ", 24 h", aim: 100},
		{name: "percentiles, exact", query: exact, check: `exact`, want: "t", what: fmt.Sprintf(usual, number(float64(l.sizes.day/2/49/6*5))) + ", 20 h"},
		{name: "pipeline_status", query: all("pipeline_status"), check: `dead_letter`, want: fmt.Sprint(l.sizes.day / 1000), what: "the one row"},
		{name: "endpoint_health", query: all("endpoint_health"), check: `count(*)`, want: "50", what: "50 endpoints, their percentiles of 24 h"},
		{name: "slow_endpoints", query: all("slow_endpoints"), check: `count(*)`, want: "5", what: "the five over 2 s of them"},
		{name: "dead_letter_analysis", query: all("dead_letter_analysis"), check: fmt.Sprintf("sum(dead_count) BETWEEN %d AND %d", l.sizes.day/1000*9/10, l.sizes.day/1000), want: "t", what: number(float64(l.sizes.day/1000)) + " dead letters"},
		{name: "dead_letter_findings", query: all("dead_letter_findings"), check: `count(*) > 0`, want: "t", what: "the same dead letters"},
	}
}

func (l *lab) aboutViews() string {
	return fmt.Sprintf("a day of %s attempts of 50 endpoints on 4 instances, half of them one endpoint's, made inside Postgres with all indexes in place "+
		"(shared_buffers=1GB, VACUUM ANALYZE, one run beforehand): the median of five runs on one connection, rows fetched.", number(float64(l.sizes.day)))
}

// views measures how long a person waits for an answer at a day of many attempts.
func (l *lab) views(ctx context.Context) error {
	return l.withDatabase(ctx, roomy, func(d *database) error {
		l.say("views: making a day of %s attempts", number(float64(l.sizes.day)))
		if err := d.fill(ctx, l.sizes.day); err != nil {
			return err
		}
		for _, q := range l.questions() {
			if err := d.check(ctx, q); err != nil {
				return err
			}
			var took []float64
			for range l.rounds {
				one, err := d.time(ctx, q.query)
				if err != nil {
					return err
				}
				took = append(took, one)
			}
			r := row{Name: q.name + ": " + q.what, Unit: "ms", Value: over(took)}
			if q.aim > 0 {
				r = r.atMost(q.aim)
			}
			l.add(r)
		}
		return nil
	})
}

// fill makes the day.
func (d *database) fill(ctx context.Context, attempts int64) error {
	if err := d.conn.Exec(ctx, "SET work_mem = '256MB'"); err != nil {
		return err
	}
	for _, statement := range fillDay {
		if err := d.conn.Exec(ctx, strings.ReplaceAll(statement, "$N", fmt.Sprint(attempts))); err != nil {
			return err
		}
	}
	return d.conn.Exec(ctx, "RESET work_mem")
}

// check runs a question once, so that what it reads is in memory, and refuses an answer that is not the one expected.
func (d *database) check(ctx context.Context, q question) error {
	rows, err := d.conn.Rows(ctx, "SELECT "+q.check+" FROM ("+q.query+") q")
	if err != nil {
		return err
	}
	if len(rows) != 1 || rows[0][0] != q.want {
		return fmt.Errorf("%s: %s is %v, want %s", q.name, q.check, rows, q.want)
	}
	return nil
}

// runs of one query make a round.
const runs = 5

// time is the median of some runs in milliseconds, rows fetched.
func (d *database) time(ctx context.Context, query string) (float64, error) {
	var took []time.Duration
	for range runs {
		began := time.Now()
		if _, err := d.conn.Rows(ctx, query); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return float64(took[runs/2].Microseconds()) / 1000, nil
}
