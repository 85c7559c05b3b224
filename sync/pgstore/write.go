package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Write stores a batch in one transaction. Rows that were stored before change nothing and count nothing.
func (s *Store) Write(ctx context.Context, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	refs := make(map[endpointRef]int32)
	for i := range rows {
		refs[refOf(&rows[i])] = 0
	}
	if err := s.endpointIDs(ctx, refs); err != nil {
		return err
	}
	live, deleted := fold(rows, s.cfg.KeepBodies)
	queue, attempts, seen := queueColumns(live, refs, s.cfg.Now()), attemptColumns(rows, refs), seenColumns(rows, refs)
	err := s.tx(ctx, s.usual("write a batch"), func(ctx context.Context, tx pgx.Tx) error {
		if err := confirm(ctx, tx, refs); err != nil {
			return err
		}
		if err := s.bury(ctx, tx, deleted); err != nil {
			return err
		}
		if len(live) > 0 {
			if _, err := tx.Exec(ctx, putQueue, append(queue.args(s.cfg.Instance), s.cfg.KeepBodies)...); err != nil {
				return err
			}
		}
		if len(attempts.event) > 0 {
			if _, err := tx.Exec(ctx, putAttempts, attempts.args(s.cfg.Instance)...); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, putSeen, seen.args(s.cfg.Instance)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.forgetEndpoints()
	}
	return err
}

// bury notes events that were removed and deletes their rows.
func (s *Store) bury(ctx context.Context, tx pgx.Tx, deleted []*state) error {
	if len(deleted) == 0 {
		return nil
	}
	keys := keysOf(deleted)
	const note = `INSERT INTO deleted_events AS d (instance_id, event_id, created_at, version)
		SELECT $1::uuid, * FROM unnest($2::text[], $3::timestamptz[], $4::bigint[])
		ON CONFLICT (instance_id, event_id, created_at) DO UPDATE SET version = greatest(d.version, excluded.version)`
	if _, err := tx.Exec(ctx, note, s.cfg.Instance, keys.event, keys.created, keys.version); err != nil {
		return err
	}
	const remove = `DELETE FROM webhook_queue q USING unnest($2::text[], $3::timestamptz[], $4::bigint[]) d(event_id, created_at, version)
		WHERE q.instance_id = $1::uuid AND q.event_id = d.event_id AND q.created_at = d.created_at AND q.version < d.version`
	_, err := tx.Exec(ctx, remove, s.cfg.Instance, keys.event, keys.created, keys.version)
	return err
}

// putQueue brings events to their latest state; $20 keeps a body that this state does without. The last attempt's fields stay where the batch has no attempt.
const putQueue = `INSERT INTO webhook_queue AS q (instance_id, event_id, created_at, endpoint_id, endpoint_url, endpoint_name, payload,
		status, attempt_count, max_attempts, next_attempt_at, delivered_at, last_error, last_status_code, last_response_ms,
		last_attempt_at, dead_reason, dead_at, version)
	SELECT $1::uuid, v.event_id, v.created_at, v.endpoint_id, v.endpoint_url, v.endpoint_name, v.payload::jsonb, v.status,
		v.attempt_count, v.max_attempts, v.next_attempt_at, v.delivered_at, v.last_error, v.last_status_code, v.last_response_ms,
		v.last_attempt_at, v.dead_reason, v.dead_at, v.version
	FROM unnest($2::text[], $3::timestamptz[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::integer[],
		$10::integer[], $11::timestamptz[], $12::timestamptz[], $13::text[], $14::integer[], $15::integer[], $16::timestamptz[],
		$17::text[], $18::timestamptz[], $19::bigint[])
		v(event_id, created_at, endpoint_id, endpoint_url, endpoint_name, payload, status, attempt_count, max_attempts,
		next_attempt_at, delivered_at, last_error, last_status_code, last_response_ms, last_attempt_at, dead_reason, dead_at, version)
	WHERE NOT EXISTS (SELECT FROM deleted_events d WHERE d.instance_id = $1::uuid AND d.event_id = v.event_id
		AND d.created_at = v.created_at AND d.version >= v.version)
	ON CONFLICT (instance_id, event_id, created_at) DO UPDATE SET
		endpoint_id = excluded.endpoint_id, endpoint_url = excluded.endpoint_url, endpoint_name = excluded.endpoint_name,
		payload = CASE WHEN $20::boolean THEN coalesce(excluded.payload, q.payload) ELSE excluded.payload END,
		status = excluded.status, attempt_count = excluded.attempt_count, max_attempts = excluded.max_attempts,
		next_attempt_at = excluded.next_attempt_at, delivered_at = excluded.delivered_at,
		last_error = CASE WHEN excluded.last_attempt_at IS NULL THEN q.last_error ELSE excluded.last_error END,
		last_status_code = CASE WHEN excluded.last_attempt_at IS NULL THEN q.last_status_code ELSE excluded.last_status_code END,
		last_response_ms = CASE WHEN excluded.last_attempt_at IS NULL THEN q.last_response_ms ELSE excluded.last_response_ms END,
		last_attempt_at = coalesce(excluded.last_attempt_at, q.last_attempt_at),
		dead_reason = excluded.dead_reason, dead_at = excluded.dead_at, version = excluded.version, updated_at = now()
	WHERE q.version < excluded.version`

// putAttempts stores attempts and adds those that are new to the counts of their minute and hour.
const putAttempts = `WITH fresh AS (
		INSERT INTO endpoint_latency (instance_id, event_id, attempt, measured_at, endpoint_id, response_ms, status_code, error)
		SELECT $1::uuid, * FROM unnest($2::text[], $3::integer[], $4::timestamptz[], $5::integer[], $6::integer[], $7::integer[], $8::text[])
		ON CONFLICT DO NOTHING RETURNING endpoint_id, measured_at, response_ms, error
	), counted AS (
		SELECT endpoint_id, date_trunc('minute', measured_at) AS minute, latency_bucket(response_ms) AS bucket, count(*) AS n,
			count(*) FILTER (WHERE error IS NULL) AS delivered, coalesce(sum(response_ms) FILTER (WHERE error IS NULL), 0) AS delivered_ms
		FROM fresh GROUP BY 1, 2, 3
	), minutes AS (
		INSERT INTO endpoint_minutes AS t (instance_id, endpoint_id, minute, attempts, delivered, delivered_ms, buckets, counts)
		SELECT $1::uuid, endpoint_id, minute, sum(n), sum(delivered), sum(delivered_ms),
			coalesce(array_agg(bucket ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), '{}'),
			coalesce(array_agg(n ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), '{}')
		FROM counted GROUP BY endpoint_id, minute ORDER BY endpoint_id, minute
		ON CONFLICT (instance_id, endpoint_id, minute) DO UPDATE SET ` + addCounts + `
	)
	INSERT INTO endpoint_hours AS t (instance_id, endpoint_id, hour, attempts, delivered, delivered_ms, buckets, counts)
	SELECT $1::uuid, endpoint_id, hour, sum(n), sum(delivered), sum(delivered_ms),
		coalesce(array_agg(bucket ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), '{}'),
		coalesce(array_agg(n ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), '{}')
	FROM (SELECT endpoint_id, date_trunc('hour', minute, 'UTC') AS hour, bucket, sum(n)::bigint AS n, sum(delivered) AS delivered,
			sum(delivered_ms) AS delivered_ms FROM counted GROUP BY 1, 2, 3) h
	GROUP BY endpoint_id, hour ORDER BY endpoint_id, hour
	ON CONFLICT (instance_id, endpoint_id, hour) DO UPDATE SET ` + addCounts

// addCounts adds a row of counts to the one that is there.
const addCounts = `attempts = t.attempts + excluded.attempts, delivered = t.delivered + excluded.delivered,
		delivered_ms = t.delivered_ms + excluded.delivered_ms,
		(buckets, counts) = (SELECT coalesce(array_agg(b ORDER BY b), '{}'), coalesce(array_agg(n ORDER BY b), '{}') FROM (
			SELECT b, sum(n)::bigint AS n FROM (SELECT * FROM unnest(t.buckets, t.counts) UNION ALL SELECT * FROM unnest(excluded.buckets, excluded.counts)) u(b, n)
			GROUP BY b) s)`

// putSeen notes when each endpoint last failed and last took something.
const putSeen = `INSERT INTO instance_endpoint_health AS h (instance_id, endpoint_id, endpoint_name, last_failure_at, last_success_at)
	SELECT $1::uuid, * FROM unnest($2::integer[], $3::text[], $4::timestamptz[], $5::timestamptz[])
	ON CONFLICT (instance_id, endpoint_id, endpoint_name) DO UPDATE SET
		last_failure_at = greatest(h.last_failure_at, excluded.last_failure_at),
		last_success_at = greatest(h.last_success_at, excluded.last_success_at), updated_at = now()`
