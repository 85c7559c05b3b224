package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// What people ask about the fleet. These calls only read, and need no instance ID. Durations that the caller gives are
// counted back from the server's clock.

// Status is the one row of pipeline_status. Its names are those of GET status.
type Status struct {
	Pipeline
	Sync FleetSync `json:"sync"`
	// Now is the server's clock, for ages.
	Now time.Time `json:"now"`
}

// Pipeline is what pipeline_status counts.
type Pipeline struct {
	Pending           int64      `json:"pending"`
	AwaitingRetry     int64      `json:"awaiting_retry"`
	InFlight          int64      `json:"in_flight"`
	DeadLetter        int64      `json:"dead_letter"`
	DeliveredLastHour int64      `json:"delivered_last_hour"`
	FailedLastHour    int64      `json:"failed_last_hour"`
	OldestPending     *time.Time `json:"oldest_pending"`
	AvgDeliveryMS     *float64   `json:"avg_delivery_ms_last_hour"`
	SpoolBytes        int64      `json:"spool_bytes"`
}

// FleetSync sums up the instances that are alive.
type FleetSync struct {
	Instances    int64   `json:"instances"`
	LagSeconds   float64 `json:"lag_seconds"`
	BacklogRows  int64   `json:"backlog_rows"`
	RejectedRows int64   `json:"rejected_rows"`
}

// FleetStatus returns the state of the whole fleet.
func (s *Store) FleetStatus(ctx context.Context) (st Status, err error) {
	const q = `SELECT pending, awaiting_retry, in_flight, dead_letter, delivered_last_hour, failed_last_hour, oldest_pending,
		avg_delivery_ms_last_hour::float8, spool_bytes, (sync->>'instances')::bigint, (sync->>'lag_seconds')::float8,
		(sync->>'backlog_rows')::bigint, (sync->>'rejected_rows')::bigint, now() FROM pipeline_status`
	err = s.tx(ctx, s.usual("read the fleet's status"), func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, q).Scan(&st.Pending, &st.AwaitingRetry, &st.InFlight, &st.DeadLetter, &st.DeliveredLastHour,
			&st.FailedLastHour, &st.OldestPending, &st.AvgDeliveryMS, &st.SpoolBytes, &st.Sync.Instances, &st.Sync.LagSeconds,
			&st.Sync.BacklogRows, &st.Sync.RejectedRows, &st.Now)
	})
	return st, err
}

// EndpointHealth is one row of endpoint_health.
type EndpointHealth struct {
	EndpointURL         string     `json:"endpoint_url"`
	State               string     `json:"state"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	FailureThreshold    *int       `json:"failure_threshold"`
	LastFailureAt       *time.Time `json:"last_failure_at"`
	LastSuccessAt       *time.Time `json:"last_success_at"`
	OpenedAt            *time.Time `json:"opened_at"`
	CooldownSeconds     *float64   `json:"cooldown_seconds"`
	P50MS               *float64   `json:"p50_ms"`
	P95MS               *float64   `json:"p95_ms"`
	P99MS               *float64   `json:"p99_ms"`
	SampleCount         int64      `json:"sample_count"`
	Paused              bool       `json:"paused"`
	Instances           int64      `json:"instances"`
}

// HealthFilter selects endpoints. Zero fields select all.
type HealthFilter struct {
	Endpoint   string        // an endpoint_url or a configured name
	OverP95    time.Duration // p95 above this
	MinSamples int64
}

// FleetHealth returns the endpoints as the fleet sees them, the slowest first.
func (s *Store) FleetHealth(ctx context.Context, f HealthFilter) ([]EndpointHealth, error) {
	const q = `SELECT endpoint_url, state, consecutive_failures, failure_threshold, last_failure_at, last_success_at, opened_at,
			cooldown_seconds::float8, p50_ms::float8, p95_ms::float8, p99_ms::float8, sample_count, paused, instances
		FROM endpoint_health h
		WHERE ($1::text = '' OR endpoint_url = $1 OR endpoint_id IN (SELECT n.endpoint_id FROM endpoint_names n WHERE n.endpoint_name = $1))
			AND ($2::float8 <= 0 OR p95_ms > $2::float8) AND sample_count >= $3::bigint
		ORDER BY p95_ms DESC NULLS LAST, endpoint_url`
	return collect[EndpointHealth](ctx, s, "read the endpoints' health", q, f.Endpoint, float64(f.OverP95.Microseconds())/1000, f.MinSamples)
}

// collect returns a query's rows as structs, column by column.
func collect[T any](ctx context.Context, s *Store, what, query string, args ...any) (list []T, err error) {
	err = s.tx(ctx, s.usual(what), func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	})
	return list, err
}

// Percentiles are one endpoint's over a period.
type Percentiles struct {
	EndpointURL string   `json:"endpoint_url"`
	P50MS       *float64 `json:"p50_ms"`
	P95MS       *float64 `json:"p95_ms"`
	P99MS       *float64 `json:"p99_ms"`
	SampleCount int64    `json:"sample_count"`
	Exact       bool     `json:"exact"` // else within 1 %
}

// FleetPercentiles asks endpoint_percentiles. The list is empty for an endpoint that nobody knows.
func (s *Store) FleetPercentiles(ctx context.Context, endpoint string, period time.Duration) ([]Percentiles, error) {
	const q = `SELECT endpoint_url, p50_ms, p95_ms, p99_ms, sample_count, exact FROM endpoint_percentiles($1::text, make_interval(secs => $2::float8))`
	return collect[Percentiles](ctx, s, "read percentiles", q, endpoint, period.Seconds())
}

// FleetP95 returns the percentiles of every endpoint that has samples between two times ago, merged from counts: one
// hour, a day back, is from 25 h to 24 h.
func (s *Store) FleetP95(ctx context.Context, from, until time.Duration) ([]Percentiles, error) {
	const q = `SELECT e.endpoint_url, p.p50_ms, p.p95_ms, p.p99_ms, p.sample_count, false FROM endpoints e
		CROSS JOIN LATERAL endpoint_counts(ARRAY[e.endpoint_id], now() - make_interval(secs => $1::float8), now() - make_interval(secs => $2::float8)) c
		CROSS JOIN LATERAL bucket_percentiles(c.buckets, c.counts) p WHERE p.sample_count > 0 ORDER BY p.p95_ms DESC, e.endpoint_url`
	return collect[Percentiles](ctx, s, "compare percentiles", q, from.Seconds(), until.Seconds())
}

// Instance is one Postern.
type Instance struct {
	ID          string     `json:"instance_id"`
	Labels      string     `json:"labels"` // a JSON object
	Version     string     `json:"version"`
	StartedAt   *time.Time `json:"started_at"`
	HeartbeatAt time.Time  `json:"heartbeat_at"`
	StoppedAt   *time.Time `json:"stopped_at"`
	ClockSkewMS int64      `json:"clock_skew_ms"`
	BacklogRows int64      `json:"backlog_rows"`
	LagMS       int64      `json:"lag_ms"`
	Live        bool       `json:"live"`
	// What it had to do at its last heartbeat.
	Pending       int64      `json:"pending"`
	AwaitingRetry int64      `json:"awaiting_retry"`
	InFlight      int64      `json:"in_flight"`
	DeadLetter    int64      `json:"dead_letter"`
	OldestPending *time.Time `json:"oldest_pending"`
	SpoolBytes    int64      `json:"spool_bytes"`
	RejectedRows  int64      `json:"rejected_rows"`
}

// FleetInstances returns all that are known, the living first.
func (s *Store) FleetInstances(ctx context.Context) ([]Instance, error) {
	const q = `SELECT i.instance_id::text, i.labels::text, i.version, i.started_at, i.heartbeat_at, i.stopped_at, i.clock_skew_ms,
			i.backlog_rows, i.lag_ms, l.instance_id IS NOT NULL AS live,
			i.pending, i.awaiting_retry, i.in_flight, i.dead_letter, i.oldest_pending, i.spool_bytes, i.rejected_rows
		FROM instances i LEFT JOIN live_instances l USING (instance_id) ORDER BY live DESC, i.heartbeat_at DESC`
	return collect[Instance](ctx, s, "read the instances", q)
}
