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

// Answers are what an endpoint answered in one minute in which it said 429.
type Answers struct {
	EndpointURL string
	At          time.Time // of the first of them
	Taken       int       // answers other than 429
	Refused     int       // 429
}

// FleetAnswers hands out the minutes in which endpoints that have dead letters by 429 said so: what such an endpoint took
// meanwhile is what it can be sent. They are added up by the server, since a busy endpoint has millions of answers.
func (s *Store) FleetAnswers(ctx context.Context, since time.Duration, yield func(Answers) bool) error {
	const q = `SELECT e.endpoint_url, min(l.measured_at), count(*) FILTER (WHERE l.status_code <> 429), count(*) FILTER (WHERE l.status_code = 429)
		FROM endpoint_latency l JOIN endpoints e USING (endpoint_id)
		WHERE l.measured_at >= now() - make_interval(secs => $1::float8) AND l.status_code IS NOT NULL AND l.endpoint_id IN (
			SELECT q.endpoint_id FROM webhook_queue q WHERE q.status = 'dead_letter' AND q.last_status_code = 429
				AND q.dead_at >= now() - make_interval(secs => $1::float8))
		GROUP BY e.endpoint_url, date_trunc('minute', l.measured_at) HAVING count(*) FILTER (WHERE l.status_code = 429) > 0`
	var a Answers
	into := []any{&a.EndpointURL, &a.At, &a.Taken, &a.Refused}
	return s.each(ctx, "read answers", q, []any{since.Seconds()}, into, func() bool { return yield(a) })
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
