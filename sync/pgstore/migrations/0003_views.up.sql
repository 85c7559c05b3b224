-- latency_bucket numbers buckets that are 2 % apart: bucket b stands for 1.02^b milliseconds, and every time in it is
-- within 1 % of that. Bucket -1 is for times under a millisecond.
CREATE FUNCTION latency_bucket(ms integer) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN ms < 1 THEN -1 ELSE round(ln(ms::float8) / ln(1.02::float8)) END::smallint $$;

-- bucket_percentiles computes what percentile_cont would, from counts. Buckets may come in any order and more than once.
CREATE FUNCTION bucket_percentiles(buckets smallint[], counts bigint[],
    OUT p50_ms float8, OUT p95_ms float8, OUT p99_ms float8, OUT sample_count bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH b AS MATERIALIZED (
        SELECT CASE WHEN bucket < 0 THEN 0 ELSE power(1.02::float8, bucket) END AS ms, sum(sum(n)) OVER (ORDER BY bucket) AS upto
          FROM unnest(buckets, counts) u(bucket, n) GROUP BY bucket
    ), t AS MATERIALIZED (SELECT coalesce(max(upto), 0)::bigint AS n FROM b),
    p AS (
        SELECT q, q * (t.n - 1) - floor(q * (t.n - 1)) AS part,
               (SELECT min(ms) FROM b WHERE upto > floor(q * (t.n - 1))) AS low,
               (SELECT min(ms) FROM b WHERE upto > ceil(q * (t.n - 1))) AS high
          FROM t, unnest(ARRAY[0.5, 0.95, 0.99]::float8[]) q
    )
    SELECT max(low + part * (high - low)) FILTER (WHERE q = 0.5), max(low + part * (high - low)) FILTER (WHERE q = 0.95),
           max(low + part * (high - low)) FILTER (WHERE q = 0.99), max(t.n)
      FROM p, t
$$;

-- endpoint_counts gathers the counts of some endpoints in [since, until): whole hours from hours, what is left at both
-- ends from minutes. Where the minutes are past their retention, the period begins with its first hour, whole or broken.
CREATE FUNCTION endpoint_counts(ids integer[], since timestamptz, until timestamptz DEFAULT 'infinity',
    OUT buckets smallint[], OUT counts bigint[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    first_hour timestamptz := date_trunc('hour', since, 'UTC');
    last_hour  timestamptz := date_trunc('hour', until, 'UTC');
BEGIN
    IF first_hour < since AND since >= (SELECT m.raw_from FROM maintenance m) THEN
        first_hour := first_hour + interval '1 hour';
    END IF;
    -- Both arrays are unnested in the select list, where they go side by side: as a table, unnest would keep each row's
    -- elements aside before the first is counted, which takes twice as long.
    SELECT array_agg(s.b), array_agg(s.n) INTO buckets, counts FROM (
        SELECT u.b, sum(u.n)::bigint AS n FROM (
            SELECT unnest(r.buckets) AS b, unnest(r.counts) AS n FROM (
                SELECT h.buckets, h.counts FROM endpoint_hours h
                 WHERE h.endpoint_id = ANY (ids) AND h.hour >= first_hour AND h.hour < last_hour
                UNION ALL
                SELECT m.buckets, m.counts FROM endpoint_minutes m
                 WHERE m.endpoint_id = ANY (ids) AND m.minute >= date_trunc('minute', since) AND m.minute < least(first_hour, until)
                UNION ALL
                SELECT m.buckets, m.counts FROM endpoint_minutes m
                 WHERE m.endpoint_id = ANY (ids) AND m.minute >= greatest(first_hour, last_hour) AND m.minute < until
            ) r) u GROUP BY u.b) s;
END $$;

-- endpoint_percentiles answers for an endpoint_url or an endpoint's name, over all instances. Exact ones are
-- percentile_cont over the rows of endpoint_latency; merged ones are within 1 % of that.
CREATE FUNCTION endpoint_percentiles(endpoint text, period interval)
RETURNS TABLE (endpoint_url text, p50_ms float8, p95_ms float8, p99_ms float8, sample_count bigint, exact boolean)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    since timestamptz := now() - period;
    ids   integer[];
    url   text;
    c     record;
    total bigint;
    floor_at timestamptz;
BEGIN
    SELECT array_agg(e.endpoint_id), min(e.endpoint_url) INTO ids, url FROM endpoints e WHERE e.endpoint_url = $1;
    IF ids IS NULL THEN
        SELECT array_agg(e.endpoint_id), min(e.endpoint_url) INTO ids, url
          FROM endpoint_names n JOIN endpoints e USING (endpoint_id) WHERE n.endpoint_name = $1;
    END IF;
    SELECT m.raw_from INTO floor_at FROM maintenance m;
    IF ids IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO c FROM endpoint_counts(ids, since);
    SELECT coalesce(sum(n), 0) INTO total FROM unnest(c.counts) n;
    IF total <= 100000 AND since >= floor_at THEN
        RETURN QUERY
            SELECT url, x.p[1], x.p[2], x.p[3], x.n, true FROM (
                SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY l.response_ms) AS p, count(l.response_ms) AS n
                  FROM endpoint_latency l WHERE l.endpoint_id = ANY (ids) AND l.measured_at >= since) x;
        RETURN;
    END IF;
    RETURN QUERY SELECT url, b.p50_ms, b.p95_ms, b.p99_ms, b.sample_count, false FROM bucket_percentiles(c.buckets, c.counts) b;
END $$;

-- live_instances are those that have sent a heartbeat lately and have not said goodbye. One that is ahead was sent before
-- this database's clock was set back.
CREATE VIEW live_instances AS
SELECT * FROM instances
 WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes' AND heartbeat_at < now() + interval '2 minutes';

-- endpoint_health is the fleet's view: the worst state of any live instance. Times are the latest of all, percentiles
-- are over the last 24 hours of all instances. An endpoint that no live instance knows is shown as closed.
--
-- A fleet of 1,000 instances with 500 endpoints each has half a million rows to choose from. So nothing is sorted: what
-- makes a row worse than another is one number (severity above failures, which count up to 16 million, above the second
-- of the report), its maximum is found by hashing, and the row that has it by a hash join. The join goes by that part of
-- the number which the table alone gives (rank), so that it comes before the one with the instances.
CREATE VIEW endpoint_health AS
WITH known AS NOT MATERIALIZED (
    SELECT h.*, l.instance_id IS NOT NULL AS live,
           CASE WHEN l.instance_id IS NULL THEN 0 WHEN h.state = 'open' THEN 3 WHEN h.state = 'half_open' THEN 2 ELSE 1 END::bigint << 56 AS severity,
           (least(greatest(h.consecutive_failures, 0), (1 << 24) - 1)::bigint << 32)
             + least(greatest(date_part('epoch', h.updated_at), 0), (1::bigint << 32) - 1)::bigint AS rank
      FROM instance_endpoint_health h LEFT JOIN live_instances l USING (instance_id)
), latest AS (
    SELECT endpoint_id, max(severity + rank) AS worst, max(last_failure_at) AS last_failure_at, max(last_success_at) AS last_success_at,
           bool_or(paused AND live) AS paused, count(*) FILTER (WHERE live) AS instances,
           min(endpoint_name COLLATE "C") <> max(endpoint_name COLLATE "C") AS several_names
      FROM known GROUP BY endpoint_id
), worst AS (
    SELECT DISTINCT ON (endpoint_id) endpoint_id, k.live, k.state, k.consecutive_failures, k.failure_threshold, k.opened_at, k.cooldown_seconds,
           l.last_failure_at, l.last_success_at, l.paused, l.instances, l.several_names
      FROM latest l JOIN known k USING (endpoint_id)
     WHERE k.rank = l.worst & ((1::bigint << 56) - 1) AND k.severity + k.rank = l.worst
     ORDER BY endpoint_id, k.updated_at DESC
)
SELECT w.endpoint_id, e.endpoint_url,
       CASE WHEN w.live THEN w.state ELSE 'closed' END AS state,
       CASE WHEN w.live THEN w.consecutive_failures ELSE 0 END AS consecutive_failures,
       w.failure_threshold, w.last_failure_at, w.last_success_at,
       CASE WHEN w.live THEN w.opened_at END AS opened_at,
       w.cooldown_seconds,
       p.p50_ms::numeric(14,3) AS p50_ms, p.p95_ms::numeric(14,3) AS p95_ms, p.p99_ms::numeric(14,3) AS p99_ms,
       p.sample_count, w.paused,
       -- An instance has one row for each name that it gives the endpoint: only where names differ must it be told from others.
       CASE WHEN w.several_names THEN (SELECT count(DISTINCT h.instance_id) FROM instance_endpoint_health h JOIN live_instances USING (instance_id)
                                        WHERE h.endpoint_id = w.endpoint_id)
            ELSE w.instances END AS instances
  FROM worst w
  JOIN endpoints e USING (endpoint_id)
  CROSS JOIN LATERAL endpoint_counts(ARRAY[w.endpoint_id], now() - interval '24 hours') c
  CROSS JOIN LATERAL bucket_percentiles(c.buckets, c.counts) p;

CREATE VIEW slow_endpoints AS
SELECT * FROM endpoint_health WHERE p95_ms > 2000 AND sample_count >= 20 ORDER BY p95_ms DESC;

-- pipeline_status is the one row of GET status, for the whole fleet. What a living instance has to do is told by its
-- heartbeat, which knows what is in flight: an event's row is not written anew when an attempt begins, and says pending or
-- failed meanwhile. For an instance that is gone its rows speak; what it had in flight waits in its spool. Dead letters are
-- rows of either.
CREATE VIEW pipeline_status AS
WITH q AS (
    SELECT count(*) FILTER (WHERE w.status = 'pending' AND l.instance_id IS NULL) AS pending,
           count(*) FILTER (WHERE w.status = 'failed' AND l.instance_id IS NULL) AS awaiting_retry,
           count(*) FILTER (WHERE w.status = 'dead_letter') AS dead_letter,
           min(w.created_at) FILTER (WHERE w.status = 'pending' AND l.instance_id IS NULL) AS oldest_pending
      FROM webhook_queue w LEFT JOIN live_instances l USING (instance_id) WHERE w.status <> 'delivered'
), h AS (
    SELECT coalesce(sum(delivered), 0)::bigint AS delivered, coalesce(sum(attempts - delivered), 0)::bigint AS failed,
           sum(delivered_ms) / nullif(sum(delivered), 0) AS avg_ms
      FROM endpoint_minutes WHERE minute > now() - interval '1 hour'
), i AS (
    SELECT coalesce(sum(pending), 0)::bigint AS pending, coalesce(sum(awaiting_retry), 0)::bigint AS awaiting_retry,
           coalesce(sum(in_flight), 0)::bigint AS in_flight, min(oldest_pending) AS oldest_pending,
           coalesce(sum(spool_bytes), 0)::bigint AS spool_bytes,
           count(*) AS instances, coalesce(max(lag_ms), 0) AS lag_ms, coalesce(sum(backlog_rows), 0)::bigint AS backlog,
           coalesce(sum(rejected_rows), 0)::bigint AS rejected
      FROM live_instances
)
SELECT q.pending + i.pending AS pending, q.awaiting_retry + i.awaiting_retry AS awaiting_retry, i.in_flight, q.dead_letter,
       h.delivered AS delivered_last_hour, h.failed AS failed_last_hour,
       least(q.oldest_pending, i.oldest_pending) AS oldest_pending, round(h.avg_ms, 3) AS avg_delivery_ms_last_hour, i.spool_bytes,
       jsonb_build_object('instances', i.instances, 'lag_seconds', round(i.lag_ms / 1000.0, 3), 'backlog_rows', i.backlog,
           'rejected_rows', i.rejected) AS sync
  FROM q, h, i;

-- dead_letters_since is the analysis of the dead letters since a time.
CREATE FUNCTION dead_letters_since(since timestamptz)
RETURNS TABLE (endpoint_id integer, endpoint_url text, dead_count bigint, primary_error text, primary_status_code integer,
    first_dead timestamptz, last_dead timestamptz, avg_attempts numeric)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    -- An event that expired before any attempt has no error: its reason stands in for it.
    WITH d AS (
        SELECT q.endpoint_id, q.dead_at, q.attempt_count, coalesce(q.last_status_code, 0) AS status,
               coalesce(q.last_error, q.dead_reason) COLLATE "C" AS class
          FROM webhook_queue q WHERE q.status = 'dead_letter' AND q.dead_at >= since
    ), per AS (
        SELECT d.endpoint_id, count(*) AS dead_count, mode() WITHIN GROUP (ORDER BY class) AS primary_error,
               min(dead_at) AS first_dead, max(dead_at) AS last_dead, round(avg(attempt_count), 2) AS avg_attempts
          FROM d GROUP BY d.endpoint_id
    ), statuses AS (
        SELECT d.endpoint_id, nullif(mode() WITHIN GROUP (ORDER BY d.status), 0) AS status
          FROM d JOIN per ON per.endpoint_id = d.endpoint_id AND per.primary_error IS NOT DISTINCT FROM d.class GROUP BY d.endpoint_id)
    SELECT per.endpoint_id, e.endpoint_url, per.dead_count, per.primary_error, statuses.status,
           per.first_dead, per.last_dead, per.avg_attempts
      FROM per JOIN statuses USING (endpoint_id) JOIN endpoints e USING (endpoint_id)
     ORDER BY per.dead_count DESC, e.endpoint_url
$$;

CREATE VIEW dead_letter_analysis AS SELECT * FROM dead_letters_since(now() - interval '24 hours');

-- dead_letter_findings names the four patterns in the dead letters of the last 24 hours, each with what to do. The rules
-- are those of `postern fleet dead-letters`, which words them for one endpoint and can tell a limit from the traffic:
-- cluster is 50 or more in any one hour, and shows the densest; credentials any 401 or 403; throttled any 429; trickle 3 to
-- 49 that more patience could have saved, beside any cluster, over at least half of the time, with at most a third of them
-- in any hour counted from the beginning of the time.
CREATE VIEW dead_letter_findings AS
WITH d AS (
    SELECT endpoint_id, dead_at, last_status_code AS status,
           coalesce(last_status_code NOT IN (401, 403, 429), true)
             AND coalesce(attempt_count > 1 OR last_error IN ('dns', 'connect', 'tls', 'timeout', 'connection', 'body_rule')
                          OR last_status_code IN (408, 425) OR last_status_code >= 500, false) AS patience,
           lead(dead_at, 49) OVER (PARTITION BY endpoint_id ORDER BY dead_at) AS fiftieth
      FROM webhook_queue WHERE status = 'dead_letter' AND dead_at >= now() - interval '24 hours'
), hours AS (
    -- The hour that ends with each of them; and until when the latest cluster that has begun by then reaches.
    SELECT d.*, count(*) OVER upto AS in_hour, count(*) FILTER (WHERE patience) OVER upto AS patience_in_hour, min(dead_at) OVER upto AS hour_from,
           max(CASE WHEN fiftieth - dead_at < interval '1 hour' THEN fiftieth END) OVER (PARTITION BY endpoint_id ORDER BY dead_at) AS cluster_until
      FROM d
    WINDOW upto AS (PARTITION BY endpoint_id ORDER BY dead_at RANGE BETWEEN interval '59 minutes 59.999999 seconds' PRECEDING AND CURRENT ROW)
), clusters AS (
    SELECT DISTINCT ON (endpoint_id) endpoint_id, in_hour, hour_from, dead_at, patience_in_hour
      FROM hours WHERE in_hour >= 50 ORDER BY endpoint_id, in_hour DESC, dead_at
), slots AS (
    SELECT endpoint_id, floor(extract(epoch FROM dead_at - (now() - interval '24 hours')) / 3600) AS slot,
           count(*) AS n, min(dead_at) AS first_at, max(dead_at) AS last_at
      FROM hours WHERE patience AND coalesce(dead_at > cluster_until, true) GROUP BY 1, 2
), trickles AS (
    SELECT endpoint_id, sum(n)::bigint AS n, min(first_at) AS first_at, max(last_at) AS last_at FROM slots GROUP BY endpoint_id
    HAVING sum(n) BETWEEN 3 AND 49 AND max(n) <= greatest(1, floor(sum(n) / 3))
       -- Where an instance's clock is ahead the time reaches to the last of them.
       AND 2 * (max(last_at) - min(first_at)) >= greatest(now(), (SELECT max(dead_at) FROM d)) - (now() - interval '24 hours')
), found AS (
    SELECT endpoint_id, 'cluster' AS finding, in_hour AS event_count, hour_from AS first_dead, dead_at AS last_dead,
           CASE WHEN 2 * patience_in_hour < in_hour
                THEN 'Most of them were refused, not lost to an outage: mend the cause (primary_error of dead_letter_analysis), then replay.'
                ELSE 'The endpoint was down for longer than its retries last: lengthen the retry window (retry.max_attempts, retry.max_delay), then replay.'
           END AS action
      FROM clusters
    UNION ALL
    SELECT endpoint_id, 'credentials', count(*), min(dead_at), max(dead_at),
           'The receiver does not accept the credentials: renew them, reset the breaker, then replay.'
      FROM d WHERE status IN (401, 403) GROUP BY endpoint_id
    UNION ALL
    SELECT endpoint_id, 'throttled', count(*), min(dead_at), max(dead_at),
           'More is sent than the receiver takes: lower the endpoint''s limits, then replay slowly.'
      FROM d WHERE status = 429 GROUP BY endpoint_id
    UNION ALL
    SELECT endpoint_id, 'trickle', n, first_at, last_at,
           'Single failures outlast the retries: raise retry.max_attempts, or shorten the timeout, then replay.'
      FROM trickles
)
SELECT f.endpoint_id, e.endpoint_url, f.finding, f.event_count, f.first_dead, f.last_dead, f.action
  FROM found f JOIN endpoints e USING (endpoint_id) ORDER BY f.event_count DESC, e.endpoint_url, f.finding;
