package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// DeadLetter is one event that was given up, as far as findings look at it.
type DeadLetter struct {
	EndpointURL  string
	EndpointName string
	DeadAt       time.Time
	StatusCode   int    // 0: no response
	Error        string // class of the last attempt; empty: none was made
	Attempts     int
	Reason       string
}

// Letters selects dead letters. Endpoint may be empty.
type Letters struct {
	Since    time.Duration // ago
	Endpoint string        // an endpoint_url or a configured name
}

// FleetDeadLetters hands out the fleet's dead letters, oldest first, until yield says no.
func (s *Store) FleetDeadLetters(ctx context.Context, l Letters, yield func(DeadLetter) bool) error {
	const q = `SELECT endpoint_url, endpoint_name, dead_at, coalesce(last_status_code, 0), coalesce(last_error, ''), attempt_count, coalesce(dead_reason, '')
		FROM webhook_queue WHERE status = 'dead_letter' AND dead_at >= now() - make_interval(secs => $1::float8)
			AND ($2::text = '' OR endpoint_url = $2 OR endpoint_name = $2) ORDER BY dead_at`
	var d DeadLetter
	into := []any{&d.EndpointURL, &d.EndpointName, &d.DeadAt, &d.StatusCode, &d.Error, &d.Attempts, &d.Reason}
	return s.each(ctx, "read dead letters", q, []any{l.Since.Seconds(), l.Endpoint}, into, func() bool { return yield(d) })
}

// Answer is an attempt that got response headers.
type Answer struct {
	EndpointURL string
	At          time.Time
	StatusCode  int
}

// FleetAnswers hands out the answers of endpoints that said 429 in that time: what such an endpoint took in the minutes
// in which it said so is what it can be sent.
func (s *Store) FleetAnswers(ctx context.Context, since time.Duration, yield func(Answer) bool) error {
	const q = `SELECT e.endpoint_url, l.measured_at, l.status_code FROM endpoint_latency l JOIN endpoints e USING (endpoint_id)
		WHERE l.measured_at >= now() - make_interval(secs => $1::float8) AND l.status_code IS NOT NULL AND l.endpoint_id IN (
			SELECT q.endpoint_id FROM webhook_queue q WHERE q.status = 'dead_letter' AND q.last_status_code = 429
				AND q.dead_at >= now() - make_interval(secs => $1::float8))`
	var a Answer
	return s.each(ctx, "read answers", q, []any{since.Seconds()}, []any{&a.EndpointURL, &a.At, &a.StatusCode}, func() bool { return yield(a) })
}

// each scans a query's rows one by one, so that their number does not matter.
func (s *Store) each(ctx context.Context, what, query string, args, into []any, yield func() bool) error {
	return s.tx(ctx, s.usual(what), func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			if !yield() {
				return nil
			}
		}
		return rows.Err()
	})
}

// DeadCount tells how many events were given up in a window, and in the one before it.
type DeadCount struct {
	EndpointURL string `json:"endpoint_url"`
	Last        int64  `json:"last"`
	Before      int64  `json:"before"`
}

// FleetDeadCounts compares the last window with the one before it, per endpoint that has dead letters in either.
func (s *Store) FleetDeadCounts(ctx context.Context, window time.Duration) ([]DeadCount, error) {
	const q = `SELECT endpoint_url, count(*) FILTER (WHERE dead_at >= now() - make_interval(secs => $1::float8)) AS last,
			count(*) FILTER (WHERE dead_at < now() - make_interval(secs => $1::float8)) AS before
		FROM webhook_queue WHERE status = 'dead_letter' AND dead_at >= now() - 2 * make_interval(secs => $1::float8)
		GROUP BY endpoint_url ORDER BY last DESC, endpoint_url`
	return collect[DeadCount](ctx, s, "count dead letters", q, window.Seconds())
}

// OpenEvent is an event that is not finished.
type OpenEvent struct {
	EventID     string     `json:"event_id"`
	InstanceID  string     `json:"instance_id"`
	EndpointURL string     `json:"endpoint_url"`
	Status      string     `json:"status"`
	Attempts    int        `json:"attempt_count"`
	MaxAttempts int        `json:"max_attempts"`
	CreatedAt   time.Time  `json:"created_at"`
	NextAttempt *time.Time `json:"next_attempt_at"`
	AgeSeconds  float64    `json:"age_seconds"` // by the server's clock
	Live        bool       `json:"live"`        // its instance is alive
}

// FleetOldest returns the oldest events that are not finished, at most limit of them. One that is older than the longest
// retry window can be is stuck.
func (s *Store) FleetOldest(ctx context.Context, limit int) ([]OpenEvent, error) {
	const q = `SELECT q.event_id, q.instance_id::text, q.endpoint_url, q.status, q.attempt_count, q.max_attempts, q.created_at, q.next_attempt_at,
			extract(epoch FROM now() - q.created_at)::float8, l.instance_id IS NOT NULL
		FROM webhook_queue q LEFT JOIN live_instances l USING (instance_id) WHERE q.status IN ('pending', 'failed', 'in_flight')
		ORDER BY q.created_at LIMIT $1::integer`
	return collect[OpenEvent](ctx, s, "read the oldest events", q, limit)
}
