package pgstore

import (
	"context"
	"time"
)

// Waiting sums up the events of one endpoint that have waited for too long.
type Waiting struct {
	EndpointURL string  `json:"endpoint_url"`
	EventID     string  `json:"event_id"` // of the oldest
	InstanceID  string  `json:"instance_id"`
	Events      int64   `json:"events"`
	AgeSeconds  float64 `json:"age_seconds"` // of the oldest, by the server's clock
	Live        bool    `json:"live"`        // its instance is alive
}

// FleetQueueAge returns the endpoints that have events which were due, and were not tried once, for longer than over. An
// event with a delay waits from the end of its delay.
func (s *Store) FleetQueueAge(ctx context.Context, over time.Duration) ([]Waiting, error) {
	const q = `WITH w AS (
			SELECT q.endpoint_url, q.event_id, q.instance_id, greatest(q.created_at, q.next_attempt_at) AS since, l.instance_id IS NOT NULL AS live
			FROM webhook_queue q LEFT JOIN live_instances l USING (instance_id)
			WHERE q.status = 'pending' AND q.created_at < now() - make_interval(secs => $1::float8)
		)
		SELECT endpoint_url, (array_agg(event_id ORDER BY since))[1], (array_agg(instance_id::text ORDER BY since))[1], count(*),
			extract(epoch FROM now() - min(since))::float8, (array_agg(live ORDER BY since))[1]
		FROM w WHERE since < now() - make_interval(secs => $1::float8) GROUP BY endpoint_url ORDER BY 5 DESC, 1`
	return collect[Waiting](ctx, s, "read the queue's age", q, over.Seconds())
}

// Window is the longest time that an event can take from its first attempt to its last.
type Window struct {
	Longest  time.Duration
	Attempts int           // that Longest is for
	Step     time.Duration // what each further attempt adds, for events that ask for more
}

// Windows are those of a fleet: by endpoint_url, and one for the endpoints that are not among them.
type Windows struct {
	Default Window
	ByURL   map[string]Window
}

// columns is the windows as one array per column, and the shortest of them.
func (w Windows) columns() (urls []string, longest []float64, attempts []int, step []float64, shortest float64) {
	shortest = w.Default.Longest.Seconds()
	for url, one := range w.ByURL {
		urls, longest = append(urls, url), append(longest, one.Longest.Seconds())
		attempts, step = append(attempts, one.Attempts), append(step, one.Step.Seconds())
		shortest = min(shortest, one.Longest.Seconds())
	}
	return urls, longest, attempts, step, shortest
}

// FleetStuck returns the endpoints that have unfinished events which are older than they can become when all goes well.
// An event begins anew with a delay's end, and when a person sends it again: both show as a gap longer than any wait.
func (s *Store) FleetStuck(ctx context.Context, w Windows) ([]Waiting, error) {
	const q = `WITH p AS MATERIALIZED (
			SELECT * FROM unnest($4::text[], $5::float8[], $6::integer[], $7::float8[]) p(url, longest, attempts, step)
		), old AS (
			SELECT q.endpoint_url, q.event_id, q.instance_id, q.created_at, q.attempt_count, q.last_attempt_at, q.next_attempt_at,
				l.instance_id IS NOT NULL AS live, make_interval(secs => least(coalesce(p.longest, $1::float8)
					+ greatest(q.max_attempts - coalesce(p.attempts, $2::integer), 0) * coalesce(p.step, $3::float8), 315360000)) AS longest
			FROM webhook_queue q LEFT JOIN live_instances l USING (instance_id) LEFT JOIN p ON p.url = q.endpoint_url
			WHERE q.status IN ('pending', 'failed', 'in_flight') AND q.created_at < now() - make_interval(secs => $8::float8)
		), w AS (
			SELECT old.*, coalesce((
				SELECT max(t.at) FROM (
					SELECT m.at, m.at - lag(m.at, 1, old.created_at) OVER (ORDER BY m.at) AS gap FROM (
						SELECT l.measured_at AS at FROM endpoint_latency l
						WHERE l.instance_id = old.instance_id AND l.event_id = old.event_id AND l.measured_at >= old.created_at
						UNION ALL
						SELECT old.next_attempt_at WHERE old.attempt_count = 0 OR old.last_attempt_at IS NOT NULL) m
					) t WHERE t.gap > old.longest), old.created_at) AS since
			FROM old
		)
		SELECT endpoint_url, (array_agg(event_id ORDER BY since))[1], (array_agg(instance_id::text ORDER BY since))[1], count(*),
			extract(epoch FROM now() - min(since))::float8, (array_agg(live ORDER BY since))[1]
		FROM w WHERE since < now() - longest GROUP BY endpoint_url ORDER BY 5 DESC, 1`
	urls, longest, attempts, step, shortest := w.columns()
	return collect[Waiting](ctx, s, "look for stuck events", q, w.Default.Longest.Seconds(), w.Default.Attempts, w.Default.Step.Seconds(),
		urls, longest, attempts, step, shortest)
}
