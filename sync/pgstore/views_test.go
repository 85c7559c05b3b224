package pgstore_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// attemptsOf makes one delivered event per duration.
func attemptsOf(url string, took ...time.Duration) (rows []pgstore.Row) {
	for i, d := range took {
		r := delivered(fmt.Sprintf("%s-%d", url, i), d)
		r.EndpointURL, r.EndpointName = url, url
		rows = append(rows, r)
	}
	return rows
}

func near(t *testing.T, what, got, want string, tolerance float64) {
	t.Helper()
	g, gerr := strconv.ParseFloat(got, 64)
	w, werr := strconv.ParseFloat(want, 64)
	if gerr != nil || werr != nil || math.Abs(g-w) > tolerance*w {
		t.Errorf("%s: %s, want %s within %.0f %%", what, got, want, 100*tolerance)
	}
}

// heavyTailed has most values around 100 ms and some of many seconds.
func heavyTailed(n int, seed uint64) (took []time.Duration) {
	r := rand.New(rand.NewPCG(seed, 2))
	for range n {
		took = append(took, time.Duration(50*math.Pow(r.Float64(), -0.8))*time.Millisecond)
	}
	return took
}

const wholePercentiles = `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY response_ms), percentile_cont(0.95) WITHIN GROUP (ORDER BY response_ms),
	percentile_cont(0.99) WITHIN GROUP (ORDER BY response_ms), count(response_ms) FROM endpoint_latency`

func TestPercentilesExactAndMerged(t *testing.T) {
	a, db := migrated(t)
	b := open(t, db, instance(instanceB))
	write(t, a, attemptsOf(partner, heavyTailed(4000, 1)...)...)
	write(t, b, attemptsOf(partner, heavyTailed(3000, 7)...)...)
	failed := tried("no-sample", 1, "failed", 0, "connect", time.Hour)
	slow := tried("sample", 1, "failed", 0, "timeout", 15*time.Second)
	write(t, a, failed, slow)
	want := db.Rows(wholePercentiles)[0]
	exact := db.Rows(`SELECT p50_ms, p95_ms, p99_ms, sample_count, exact FROM endpoint_percentiles('` + partner + `', '24 hours')`)[0]
	same(t, "exact", exact, append(slices.Clone(want), "t"))
	db.Exec(`UPDATE maintenance SET raw_from = now() - interval '1 minute'`) // raw rows of before are gone
	merged := db.Rows(`SELECT p50_ms, p95_ms, p99_ms, sample_count, exact FROM endpoint_percentiles('` + partner + `', '24 hours')`)[0]
	for i, name := range []string{"p50", "p95", "p99"} {
		near(t, "merged "+name, merged[i], want[i], 0.02)
	}
	same(t, "merged count", merged[3:], []string{"7001", "f"})
	near(t, "the health's p99", db.Value(`SELECT p99_ms FROM endpoint_health`), want[2], 0.02)
	same(t, "the health's count", db.Value(`SELECT sample_count FROM endpoint_health`), 7001)
	same(t, "unknown", db.Value(`SELECT count(*) FROM endpoint_percentiles('https://nobody.example', '24 hours')`), 0)
}

// TestSmallNumbersOfSamples compares with percentile_cont where ranks lie between samples.
func TestSmallNumbersOfSamples(t *testing.T) {
	_, db := migrated(t)
	for n := 1; n < 8; n++ {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprint(1+i*i*100))
		}
		list := strings.Join(values, ",")
		want := db.Rows(`SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY v) FROM unnest(ARRAY[` + list + `]) v`)[0][0]
		got := db.Rows(`SELECT ARRAY[p50_ms, p95_ms, p99_ms], sample_count FROM (SELECT array_agg(latency_bucket(v)) b, array_agg(1::bigint) n FROM unnest(ARRAY[` + list + `]) v) s,
			bucket_percentiles(b, n)`)[0]
		wants, gots := strings.Split(strings.Trim(want, "{}"), ","), strings.Split(strings.Trim(got[0], "{}"), ",")
		for i := range wants {
			near(t, fmt.Sprintf("%d samples, %d", n, i), gots[i], wants[i], 0.01)
		}
		same(t, "count", got[1], n)
	}
}

func TestPercentilesByNameAndPeriod(t *testing.T) {
	s, db := migrated(t)
	var rows []pgstore.Row
	for i, r := range attemptsOf("https://partner.example/pb", 10*time.Millisecond, 20*time.Millisecond, 1000*time.Millisecond) {
		r.EndpointName = "partner-a"
		r.Attempt.EndedAt = time.Now().Add(-time.Duration(i) * 90 * time.Minute)
		rows = append(rows, r)
	}
	write(t, s, rows...)
	for _, tc := range []struct{ period, want string }{{"1 hour", "1 10"}, {"2 hours", "2 15"}, {"4 hours", "3 20"}} {
		for _, raw := range []string{"'-infinity'", "now()"} {
			db.Exec(`UPDATE maintenance SET raw_from = ` + raw)
			got := db.Rows(`SELECT sample_count, round(p50_ms) FROM endpoint_percentiles('partner-a', '` + tc.period + `')`)[0]
			if raw == "now()" && tc.period != "4 hours" {
				continue // past their retention, the minutes are gone too, and the period is one of hours
			}
			same(t, tc.period+" raw from "+raw, strings.Join(got, " "), tc.want)
		}
	}
}

func health(state string, failures int) pgstore.Health {
	return pgstore.Health{
		EndpointName: partner, EndpointURL: partner, State: state, ConsecutiveFailures: failures, FailureThreshold: 10,
		Cooldown: 300500 * time.Millisecond, OpenedAt: now, P50: 1500 * time.Microsecond, P95: time.Second, P99: time.Second, Samples: 3,
	}
}

func report(t *testing.T, s *pgstore.Store, h ...pgstore.Health) {
	t.Helper()
	if _, err := s.Heartbeat(t.Context(), pgstore.Heartbeat{InFlight: 2, SpoolBytes: 100, Lag: 1500 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteHealth(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

func TestEndpointHealthIsTheWorstOfTheLiving(t *testing.T) {
	a, db := migrated(t)
	b := open(t, db, instance(instanceB))
	const q = `SELECT state, consecutive_failures, failure_threshold, opened_at IS NOT NULL, cooldown_seconds, instances FROM endpoint_health`
	write(t, a, tried("f", 1, "failed", 500, "http_500", time.Millisecond), delivered("d", 3*time.Millisecond))
	report(t, a, health("closed", 3))
	report(t, b, health("open", 12))
	same(t, "open somewhere", db.Rows(q), "[[open 12 10 t 300.500 2]]")
	report(t, a, health("half_open", 15))
	same(t, "open is worse than half open", db.Rows(q), "[[open 12 10 t 300.500 2]]")
	db.Exec(`UPDATE instances SET heartbeat_at = now() - interval '3 minutes' WHERE instance_id = '` + instanceB + `'`)
	same(t, "one has gone", db.Rows(q), "[[half_open 15 10 t 300.500 1]]")
	if _, err := a.Heartbeat(t.Context(), pgstore.Heartbeat{Stopping: true}); err != nil {
		t.Fatal(err)
	}
	same(t, "both have gone", db.Rows(q), "[[closed 0 10 f 300.500 0]]")
	same(t, "times", db.Rows(`SELECT last_failure_at, last_success_at, sample_count FROM endpoint_health`),
		fmt.Sprintf("[[%s %[1]s 2]]", now.Add(time.Second).Format("2006-01-02 15:04:05+00")))
	report(t, b, health("closed", 0))
	same(t, "back again", db.Rows(q), "[[closed 0 10 t 300.500 1]]")
	same(t, "states are words", db.Value(`SELECT count(*) FROM instance_endpoint_health WHERE state NOT IN ('open', 'half_open', 'closed')`), 0)
}

func TestPipelineStatusIsTheFleets(t *testing.T) {
	a, db := migrated(t)
	b := open(t, db, instance(instanceB))
	same(t, "empty", db.Rows(`SELECT * FROM pipeline_status`), `[[0 0 0 0 0 0 null null 0 {"instances": 0, "lag_seconds": 0.000, "backlog_rows": 0, "rejected_rows": 0}]]`)
	write(t, a, pending("p"), pending("on its way"), tried("f", 1, "failed", 500, "http_500", 1), delivered("d", 10*time.Millisecond), delivered("e", 20*time.Millisecond))
	early := pending("q")
	early.CreatedAt = now.Add(-time.Hour)
	write(t, b, tried("x", 1, "dead_letter", 404, "http_404", 1), delivered("d", 30*time.Millisecond), early, tried("g", 1, "failed", 500, "http_500", 1))
	const q = `SELECT pending, awaiting_retry, in_flight, dead_letter, oldest_pending FROM pipeline_status`
	const stamp = "2006-01-02 15:04:05+00"
	longAgo, lately := now.Add(-time.Hour).Format(stamp), now.Add(-time.Minute).Format(stamp)
	same(t, "rows of instances that nobody heard of", db.Rows(q), "[[3 2 0 1 "+longAgo+"]]")
	for s, h := range map[*pgstore.Store]pgstore.Heartbeat{
		a: {Pending: 1, InFlight: 2, OldestPending: now.Add(-time.Minute), SpoolBytes: 100, Lag: 1500 * time.Millisecond},
		b: {AwaitingRetry: 1, InFlight: 1, SpoolBytes: 100},
	} {
		if _, err := s.Heartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "each event once", db.Rows(q), "[[1 1 3 1 "+lately+"]]")
	same(t, "the rest", db.Rows(`SELECT delivered_last_hour, failed_last_hour, avg_delivery_ms_last_hour, spool_bytes, sync FROM pipeline_status`),
		`[[3 3 20.000 200 {"instances": 2, "lag_seconds": 1.500, "backlog_rows": 0, "rejected_rows": 0}]]`)
	db.Exec(`UPDATE instances SET heartbeat_at = now() - interval '3 minutes' WHERE instance_id = '` + instanceB + `'`)
	same(t, "what one that is gone had to do", db.Rows(q), "[[2 1 2 1 "+longAgo+"]]")
	if _, err := a.Heartbeat(t.Context(), pgstore.Heartbeat{Stopping: true, Pending: 2, AwaitingRetry: 1}); err != nil {
		t.Fatal(err)
	}
	same(t, "what both had to do", db.Rows(q), "[[3 2 0 1 "+longAgo+"]]")
}

// TestCentralQueriesRunUnchanged: those that were written against the three relations before Postern filled them.
func TestCentralQueriesRunUnchanged(t *testing.T) {
	s, db := migrated(t)
	var rows []pgstore.Row
	for i := range 30 {
		rows = append(rows, attemptsOf("https://slow.example", 3*time.Second+time.Duration(i)*time.Millisecond)...)
		rows[i].EventID = fmt.Sprint("slow", i)
	}
	for i := range 7 {
		rows = append(rows, tried(fmt.Sprint("dead", i), 5, "dead_letter", 503, "http_503", 40*time.Millisecond))
	}
	rows = append(rows, tried("dead", 5, "dead_letter", 0, "timeout", 15*time.Second), pending("p"), delivered("d", 10*time.Millisecond))
	write(t, s, rows...)
	slow := health("closed", 0)
	slow.EndpointName, slow.EndpointURL = "https://slow.example", "https://slow.example"
	report(t, s, slow, health("open", 10))
	for _, tc := range []struct{ query, want string }{
		{`SELECT COUNT(*) FILTER (WHERE status = 'pending') AS pending,
			COUNT(*) FILTER (WHERE status = 'failed' AND next_attempt_at > NOW()) AS awaiting_retry,
			COUNT(*) FILTER (WHERE status = 'in_flight') AS in_flight,
			COUNT(*) FILTER (WHERE status = 'dead_letter') AS dead_letter,
			COUNT(*) FILTER (WHERE status = 'delivered' AND delivered_at > NOW() - INTERVAL '1 hour') AS delivered_last_hour,
			COUNT(*) FILTER (WHERE status = 'failed' AND created_at > NOW() - INTERVAL '1 hour') AS failed_last_hour,
			MIN(created_at) FILTER (WHERE status = 'pending') IS NOT NULL AS oldest_pending,
			ROUND(AVG(last_response_ms) FILTER (WHERE status = 'delivered'), 1) AS avg_delivery_ms FROM webhook_queue`, "[[1 0 0 8 31 0 t 2917.6]]"},
		{`SELECT endpoint_id, percentile_cont(0.50) WITHIN GROUP (ORDER BY response_ms) AS p50, percentile_cont(0.95) WITHIN GROUP (ORDER BY response_ms) AS p95,
			percentile_cont(0.99) WITHIN GROUP (ORDER BY response_ms) AS p99, COUNT(*) AS samples FROM endpoint_latency
			WHERE measured_at > NOW() - INTERVAL '24 hours' GROUP BY endpoint_id HAVING COUNT(*) > 10`, "[[2 3014.5 3027.55 3028.71 30]]"},
		{`SELECT endpoint_url, state, ROUND(p50_ms, 0), ROUND(p95_ms / 1000.0, 1), sample_count FROM endpoint_health WHERE p95_ms > 2000 AND sample_count >= 20 ORDER BY p95_ms DESC`,
			"[[https://slow.example closed 3041 3.0 30]]"},
		{`SELECT endpoint_url, consecutive_failures, failure_threshold, opened_at + cooldown_seconds * INTERVAL '1 second' > NOW() AS waits,
			make_interval(secs => cooldown_seconds) FROM endpoint_health WHERE state <> 'closed'`, "[[https://partner.example 10 10 t 00:05:00.5]]"},
		{`SELECT endpoint_url, COUNT(*) AS dead_count, MODE() WITHIN GROUP (ORDER BY last_error) AS primary_error,
			MODE() WITHIN GROUP (ORDER BY last_status_code) AS primary_status_code, MIN(created_at) <= MAX(created_at), ROUND(AVG(attempt_count), 1) AS avg_attempts
			FROM webhook_queue WHERE status = 'dead_letter' AND created_at > NOW() - INTERVAL '24 hours' GROUP BY endpoint_url ORDER BY dead_count DESC`,
			"[[https://partner.example 8 http_503 503 t 5.0]]"},
		{`SELECT endpoint_url, dead_count, primary_error, primary_status_code, first_dead = last_dead, avg_attempts FROM dead_letter_analysis`,
			"[[https://partner.example 8 http_503 503 t 5.00]]"},
		{`SELECT endpoint_url, round(p95_ms) FROM slow_endpoints`, "[[https://slow.example 3041]]"},
		{`SELECT l.status_code, COUNT(*) FROM endpoint_latency l JOIN endpoint_health h USING (endpoint_id) GROUP BY 1 ORDER BY 1`, "[[200 31] [503 7] [null 1]]"},
	} {
		got := db.Rows(tc.query)
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%s\ngot  %s\nwant %s", tc.query, got, tc.want)
		}
	}
}

// letters makes n dead letters of one endpoint, each step apart, the last one of them just now.
func letters(url string, n int, step time.Duration, code int, class string) (rows []pgstore.Row) {
	for i := range n {
		r := tried(fmt.Sprintf("%s-%s-%d", url, class, i), 5, "dead_letter", code, class, time.Millisecond)
		r.EndpointName, r.EndpointURL = url, url
		r.Attempt.EndedAt = now.Add(-time.Duration(i) * step)
		rows = append(rows, r)
	}
	return rows
}

func TestFindings(t *testing.T) {
	s, db := migrated(t)
	for _, rows := range [][]pgstore.Row{
		letters("https://down.example", 60, time.Minute, 503, "http_503"),
		letters("https://quiet.example", 40, time.Minute, 503, "http_503"),
		letters("https://keys.example", 1, time.Minute, 401, "http_401"),
		letters("https://limit.example", 4, time.Minute, 429, "http_429"),
		letters("https://drip.example", 9, 150*time.Minute, 0, "timeout"),
		letters("https://old.example", 60, 0, 503, "http_503"),
	} {
		write(t, s, rows...)
	}
	db.Exec(`UPDATE webhook_queue SET dead_at = now() - interval '25 hours' WHERE endpoint_url = 'https://old.example'`)
	same(t, "findings", db.Rows(`SELECT endpoint_url, finding, event_count FROM dead_letter_findings ORDER BY 1, 2`),
		[][]string{{"https://down.example", "cluster", "60"}, {"https://drip.example", "trickle", "9"}, {"https://keys.example", "credentials", "1"}, {"https://limit.example", "throttled", "4"}})
	same(t, "each says what to do", db.Value(`SELECT count(*) FROM dead_letter_findings WHERE length(action) < 20`), 0)
}

// TestColumns: names and order are a contract with whoever queries.
func TestColumns(t *testing.T) {
	_, db := migrated(t)
	for relation, want := range map[string]string{
		"webhook_queue":        "id,endpoint_id,endpoint_url,payload,status,attempt_count,max_attempts,created_at,next_attempt_at,delivered_at,last_error,last_status_code,last_response_ms,event_id,instance_id,dead_reason",
		"endpoint_latency":     "id,endpoint_id,response_ms,status_code,measured_at,event_id,attempt,error,instance_id",
		"endpoint_health":      "endpoint_id,endpoint_url,state,consecutive_failures,failure_threshold,last_failure_at,last_success_at,opened_at,cooldown_seconds,p50_ms,p95_ms,p99_ms,sample_count",
		"pipeline_status":      "pending,awaiting_retry,in_flight,dead_letter,delivered_last_hour,failed_last_hour,oldest_pending,avg_delivery_ms_last_hour,spool_bytes,sync",
		"dead_letter_analysis": "endpoint_id,endpoint_url,dead_count,primary_error,primary_status_code,first_dead,last_dead,avg_attempts",
	} {
		got := db.Value(`SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '` + relation + `'::regclass AND attnum > 0 AND NOT attisdropped`)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s has the columns %s\nwant %s", relation, got, want)
		}
	}
	same(t, "types", db.Rows(`SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = 'webhook_queue'::regclass AND attname IN ('endpoint_id', 'payload', 'endpoint_url') ORDER BY 1`),
		"[[endpoint_id integer] [endpoint_url text] [payload jsonb]]")
}

func explain(db *pgtest.DB, query string) string {
	var lines []string
	for _, row := range db.Rows("EXPLAIN (COSTS OFF) " + query) {
		lines = append(lines, row[0])
	}
	return strings.Join(lines, "\n")
}

// TestWhatChangesOftenIsNotIndexed: an update of these tables is HOT as long as no index has a column beyond the key, and
// as long as their pages have room.
func TestWhatChangesOftenIsNotIndexed(t *testing.T) {
	_, db := migrated(t)
	same(t, "indexed beyond the key", db.Rows(`SELECT i.indrelid::regclass, a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
		JOIN pg_index k ON k.indrelid = i.indrelid AND k.indisprimary
		WHERE i.indrelid IN ('instances'::regclass, 'instance_endpoint_health'::regclass, 'endpoint_minutes'::regclass, 'endpoint_hours'::regclass)
			AND NOT a.attnum = ANY (k.indkey)`), "[]")
	same(t, "full pages", db.Rows(`SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema::regnamespace
		AND (relname IN ('instances', 'instance_endpoint_health', 'endpoint_hours') OR relname LIKE 'endpoint_minutes%')
		AND NOT coalesce(reloptions::text ~ 'fillfactor=[57]0', false)`), "[]")
}

// TestViewsReadIndexes: what people ask first must not read what is delivered.
func TestViewsReadIndexes(t *testing.T) {
	s, db := migrated(t)
	var rows []pgstore.Row
	for i := range 3000 {
		rows = append(rows, delivered(fmt.Sprint("d", i), time.Millisecond))
	}
	write(t, s, append(rows, pending("p"))...)
	db.Exec("ANALYZE")
	for name, query := range map[string]string{
		"webhook_queue_p[0-9]+_status_created_at_instance_id_idx":          `SELECT * FROM pipeline_status`,
		"webhook_queue_p[0-9]+_endpoint_id_dead_at_idx":                    `SELECT count(*) FROM webhook_queue WHERE status = 'dead_letter' AND endpoint_id = 1 AND dead_at > now() - interval '1 day'`,
		"endpoint_latency_p[0-9]+_endpoint_id_measured_at_response_ms_idx": `SELECT count(*) FROM endpoint_latency WHERE endpoint_id = 1 AND measured_at > now() + interval '1 second'`,
	} {
		plan := explain(db, query)
		if !strings.Contains(plan, "Index") || strings.Contains(plan, "Seq Scan on webhook_queue_p"+now.Format("20060102")) {
			t.Errorf("%s is not used:\n%s", name, plan)
		}
	}
}
