package pgstore

import (
	"context"
	"time"
)

// Hour is what the whole fleet measured of one endpoint in one hour.
type Hour struct {
	EndpointURL string    `json:"endpoint_url"`
	Hour        time.Time `json:"hour"`
	P50MS       float64   `json:"p50_ms"`
	P95MS       float64   `json:"p95_ms"`
	SampleCount int64     `json:"sample_count"`
}

// FleetHours returns the hours of every endpoint that has samples since then, in order of endpoint and time; the present
// hour is the last. It is for pictures: percentiles are whole buckets, within 2 % of the exact ones, since merging them
// as endpoint_percentiles does would take a call per endpoint and hour.
func (s *Store) FleetHours(ctx context.Context, since time.Duration) ([]Hour, error) {
	const q = `WITH merged AS (
			SELECT u.endpoint_id, u.hour, u.b, sum(u.n) AS n
			FROM (SELECT endpoint_id, hour, unnest(buckets) AS b, unnest(counts) AS n FROM endpoint_hours
				WHERE hour > now() - make_interval(secs => $1::float8)) u
			GROUP BY 1, 2, 3
		), ranked AS (
			SELECT endpoint_id, hour, CASE WHEN b < 0 THEN 0 ELSE power(1.02::float8, b) END AS ms,
				sum(n) OVER (PARTITION BY endpoint_id, hour ORDER BY b) AS upto, sum(n) OVER (PARTITION BY endpoint_id, hour) AS total
			FROM merged
		)
		SELECT e.endpoint_url, r.hour, min(r.ms) FILTER (WHERE r.upto >= 0.5 * r.total), min(r.ms) FILTER (WHERE r.upto >= 0.95 * r.total), max(r.total)::bigint
		FROM ranked r JOIN endpoints e USING (endpoint_id) GROUP BY e.endpoint_url, r.hour HAVING max(r.total) > 0 ORDER BY 1, 2`
	return collect[Hour](ctx, s, "read the hours", q, since.Seconds())
}

// Breaker is an endpoint as one live instance holds it back.
type Breaker struct {
	EndpointURL         string     `json:"endpoint_url"`
	EndpointName        string     `json:"endpoint_name"`
	InstanceID          string     `json:"instance_id"`
	State               string     `json:"state"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	OpenedAt            *time.Time `json:"opened_at"`
	CooldownSeconds     *float64   `json:"cooldown_seconds"`
	Paused              bool       `json:"paused"`
}

// FleetBreakers returns the endpoints whose breaker is not closed, or that are paused, instance by instance: those of the
// endpoint that most instances hold back first. It returns limit of them at most.
func (s *Store) FleetBreakers(ctx context.Context, limit int) ([]Breaker, error) {
	const q = `SELECT e.endpoint_url, h.endpoint_name, h.instance_id::text, h.state, h.consecutive_failures, h.opened_at, h.cooldown_seconds::float8, h.paused
		FROM instance_endpoint_health h JOIN live_instances l USING (instance_id) JOIN endpoints e USING (endpoint_id)
		WHERE h.state <> 'closed' OR h.paused
		ORDER BY count(*) OVER (PARTITION BY h.endpoint_id) DESC, e.endpoint_url, h.state DESC, h.opened_at, h.instance_id LIMIT $1::int`
	return collect[Breaker](ctx, s, "read the breakers", q, limit)
}
