package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// FleetEndpoints returns the endpoint_urls that a person means by an endpoint_url or a configured name, in order. It is
// empty where nobody in the fleet knows one.
func (s *Store) FleetEndpoints(ctx context.Context, endpoint string) ([]string, error) {
	// An origin is stored without a slash at its end, and is often typed with one.
	const q = `SELECT DISTINCT e.endpoint_url FROM endpoints e LEFT JOIN endpoint_names n USING (endpoint_id)
		WHERE e.endpoint_url IN ($1::text, rtrim($1::text, '/')) OR n.endpoint_name = $1::text ORDER BY 1`
	type row struct{ URL string }
	rows, err := collect[row](ctx, s, "look the endpoint up", q, endpoint)
	urls := make([]string, 0, len(rows))
	for _, r := range rows {
		urls = append(urls, r.URL)
	}
	return urls, err
}

// FleetStatusOf is FleetStatus for some endpoints alone. What is not known per endpoint (in_flight, spool_bytes) is zero:
// events in flight are among those that their latest row says, pending or awaiting their retry.
func (s *Store) FleetStatusOf(ctx context.Context, urls []string) (st Status, err error) {
	const q = `WITH e AS (SELECT endpoint_id FROM endpoints WHERE endpoint_url = ANY ($1::text[])
		), q AS (
			SELECT count(*) FILTER (WHERE status = 'pending') AS pending, count(*) FILTER (WHERE status = 'failed') AS failed,
				count(*) FILTER (WHERE status = 'dead_letter') AS dead,
				min(created_at) FILTER (WHERE status = 'pending') AS oldest
			FROM webhook_queue WHERE status <> 'delivered' AND endpoint_id IN (SELECT endpoint_id FROM e)
		), h AS (
			SELECT coalesce(sum(delivered), 0)::bigint AS delivered, coalesce(sum(attempts - delivered), 0)::bigint AS failed,
				(sum(delivered_ms) / nullif(sum(delivered), 0))::float8 AS avg_ms
			FROM endpoint_minutes WHERE minute > now() - interval '1 hour' AND endpoint_id IN (SELECT endpoint_id FROM e)
		)
		SELECT q.pending, q.failed, q.dead, h.delivered, h.failed, q.oldest, h.avg_ms, (p.sync->>'instances')::bigint,
			(p.sync->>'lag_seconds')::float8, (p.sync->>'backlog_rows')::bigint, (p.sync->>'rejected_rows')::bigint, now()
		FROM q, h, pipeline_status p`
	err = s.tx(ctx, s.usual("read the endpoint's status"), func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, q, urls).Scan(&st.Pending, &st.AwaitingRetry, &st.DeadLetter, &st.DeliveredLastHour,
			&st.FailedLastHour, &st.OldestPending, &st.AvgDeliveryMS, &st.Sync.Instances, &st.Sync.LagSeconds, &st.Sync.BacklogRows,
			&st.Sync.RejectedRows, &st.Now)
	})
	return st, err
}

// FleetPercentilesOf asks endpoint_percentiles for several endpoints, or for all where urls is nil, the slowest first.
// Endpoints without samples in that time are left out.
func (s *Store) FleetPercentilesOf(ctx context.Context, urls []string, period time.Duration) ([]Percentiles, error) {
	const q = `SELECT p.endpoint_url, p.p50_ms, p.p95_ms, p.p99_ms, p.sample_count, p.exact FROM endpoints e
		CROSS JOIN LATERAL endpoint_percentiles(e.endpoint_url, make_interval(secs => $2::float8)) p
		WHERE p.sample_count > 0 AND ($1::text[] IS NULL OR e.endpoint_url = ANY ($1::text[]))
		ORDER BY p.p95_ms DESC, p.endpoint_url`
	return collect[Percentiles](ctx, s, "read percentiles", q, urls, period.Seconds())
}

// FleetNow is the server's clock.
func (s *Store) FleetNow(ctx context.Context) (now time.Time, err error) {
	err = s.tx(ctx, s.usual("read the clock"), func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT now()`).Scan(&now)
	})
	return now, err
}
