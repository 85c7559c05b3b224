package pgstore_test

import "testing"

// plainHealth says what endpoint_health promises in the plainest way, without its percentiles: it sorts every row.
const plainHealth = `WITH known AS (
		SELECT h.*, l.instance_id IS NOT NULL AS live,
			CASE WHEN l.instance_id IS NULL THEN 0 WHEN h.state = 'open' THEN 3 WHEN h.state = 'half_open' THEN 2 ELSE 1 END AS severity
		FROM instance_endpoint_health h LEFT JOIN live_instances l USING (instance_id)
	), worst AS (
		SELECT DISTINCT ON (endpoint_id) * FROM known ORDER BY endpoint_id, severity DESC, consecutive_failures DESC, updated_at DESC
	), latest AS (
		SELECT endpoint_id, max(last_failure_at) AS last_failure_at, max(last_success_at) AS last_success_at,
			bool_or(paused AND live) AS paused, count(DISTINCT instance_id) FILTER (WHERE live) AS instances
		FROM known GROUP BY endpoint_id
	)
	SELECT endpoint_id, endpoint_url, CASE WHEN live THEN state ELSE 'closed' END, CASE WHEN live THEN consecutive_failures ELSE 0 END,
		failure_threshold, l.last_failure_at, l.last_success_at, CASE WHEN live THEN opened_at END, cooldown_seconds, l.paused, l.instances
	FROM worst JOIN latest l USING (endpoint_id) JOIN endpoints USING (endpoint_id)`

const viewHealth = `SELECT endpoint_id, endpoint_url, state, consecutive_failures, failure_threshold, last_failure_at, last_success_at,
	opened_at, cooldown_seconds, paused, instances FROM endpoint_health`

// TestEndpointHealthOfManyInstances compares the view with its plain definition over rows of 40 instances, a third of
// them gone: endpoints that go by one name and by three, as many failures as count, reports of the same second,
// endpoints that only those know that have gone.
func TestEndpointHealthOfManyInstances(t *testing.T) {
	_, db := migrated(t)
	db.Exec(`SELECT setseed(0.42);
		INSERT INTO endpoints (endpoint_url) SELECT 'https://partner-' || e || '.example' FROM generate_series(1, 30) e;
		INSERT INTO instances (instance_id, heartbeat_at, stopped_at) SELECT ('0190a6c0-7b2c-7def-8123-' || lpad(i::text, 12, '0'))::uuid,
			now() - CASE WHEN i % 6 = 0 THEN interval '3 minutes' ELSE interval '0' END, CASE WHEN i % 6 = 1 THEN now() END FROM generate_series(1, 38) i;
		INSERT INTO instance_endpoint_health (instance_id, endpoint_id, endpoint_name, state, consecutive_failures, failure_threshold,
				last_failure_at, last_success_at, opened_at, cooldown_seconds, paused, updated_at)
			SELECT ('0190a6c0-7b2c-7def-8123-' || lpad(i::text, 12, '0'))::uuid, e, 'name ' || n,
				CASE WHEN e % 5 = 0 THEN (ARRAY['open', 'half_open', 'closed'])[1 + floor(random() * 3)] ELSE 'closed' END,
				CASE e % 3 WHEN 0 THEN 0 WHEN 1 THEN floor(random() * 3) ELSE (1 << 24) - floor(random() * 50) - 1 END,
				100 * i + n, now() - random() * interval '1 day', CASE WHEN e <> 7 THEN now() - random() * interval '1 day' END,
				CASE WHEN random() < 0.5 THEN now() - random() * interval '1 hour' END, random() * 1000, random() < 0.03,
				date_trunc('second', now()) - floor(random() * 3) * interval '1 second' + (40 * n + i) * interval '1 millisecond'
			FROM generate_series(1, 40) i, generate_series(1, 30) e, generate_series(1, 3) n
			WHERE (n = 1 OR e % 4 = 0) AND (e <> 9 OR i % 6 < 2) AND random() < 0.8`)
	same(t, "rows are as they should be for this", db.Rows(`SELECT count(*) > 500, count(DISTINCT state), bool_or(paused), max(consecutive_failures) = (1 << 24) - 1
		FROM instance_endpoint_health`), "[[t 3 t t]]")
	same(t, "rows that differ", db.Rows(`(`+viewHealth+` EXCEPT (`+plainHealth+`)) UNION ALL ((`+plainHealth+`) EXCEPT `+viewHealth+`)`), "[]")
	same(t, "one for each endpoint", db.Rows(`SELECT count(*), count(DISTINCT endpoint_id), min(instances), max(instances) < 28 FROM endpoint_health`), "[[30 30 0 t]]")
}
