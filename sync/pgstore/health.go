package pgstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// Heartbeat is what an instance says of itself.
type Heartbeat struct {
	StartedAt                              time.Time
	Pending, AwaitingRetry, InFlight, Dead int64
	OldestPending                          time.Time
	SpoolBytes                             int64
	BacklogRows                            int64         // waiting for Postgres
	Lag                                    time.Duration // of the oldest of them
	RejectedRows                           int64         // refused by Postgres since the instance was made
	DroppedRows                            int64         // history dropped for want of room
	// Stopping says goodbye: the instance has gone from now on, until its next heartbeat.
	Stopping bool
}

// Beat is what a heartbeat tells the instance.
type Beat struct {
	Skew time.Duration // by how much this machine's clock is ahead of the server's, roughly
	// New tells that the store did not know the instance: it is its first heartbeat, or the tables were made anew, or the
	// instance was away for longer than the retention. Then the store may not know what it was told before either.
	New bool
}

// Health is one endpoint as one instance sees it.
type Health struct {
	EndpointName, EndpointURL string
	State                     string // closed, half_open or open
	ConsecutiveFailures       int
	FailureThreshold          int // the one in force
	OpenedAt                  time.Time
	Cooldown                  time.Duration // the one in force
	Paused                    bool
	P50, P95, P99             time.Duration
	Samples                   int
}

// skewWorthSaying is a difference of clocks that makes "the last hour" a different hour.
const skewWorthSaying = time.Minute

// Heartbeat says that the instance is alive. Views that speak of the last hour go by the server's clock.
func (s *Store) Heartbeat(ctx context.Context, h Heartbeat) (Beat, error) {
	labels, err := json.Marshal(cleanLabels(s.cfg.Labels))
	if err != nil {
		return Beat{}, err
	}
	const put = `WITH before AS (SELECT started_at FROM instances WHERE instance_id = $1::uuid)
		INSERT INTO instances AS i (instance_id, labels, version, started_at, stopped_at, clock_skew_ms, pending, awaiting_retry,
			in_flight, dead_letter, oldest_pending, spool_bytes, backlog_rows, lag_ms, rejected_rows, dropped_rows)
		SELECT $1::uuid, $2::jsonb, $3::text, $4::timestamptz, CASE WHEN $5::boolean THEN now() END,
			(extract(epoch FROM $6::timestamptz - clock_timestamp()) * 1000)::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint,
			$11::timestamptz, $12::bigint, $13::bigint, $14::bigint, $15::bigint, $16::bigint
		ON CONFLICT (instance_id) DO UPDATE SET labels = excluded.labels, version = excluded.version, started_at = excluded.started_at,
			heartbeat_at = now(), stopped_at = excluded.stopped_at, clock_skew_ms = excluded.clock_skew_ms, pending = excluded.pending,
			awaiting_retry = excluded.awaiting_retry, in_flight = excluded.in_flight, dead_letter = excluded.dead_letter,
			oldest_pending = excluded.oldest_pending, spool_bytes = excluded.spool_bytes, backlog_rows = excluded.backlog_rows,
			lag_ms = excluded.lag_ms, rejected_rows = excluded.rejected_rows, dropped_rows = excluded.dropped_rows
		RETURNING clock_skew_ms, (SELECT b.started_at FROM before b), NOT EXISTS (SELECT FROM before)`
	var skewMS int64
	var first bool
	var before *time.Time
	err = s.tx(ctx, s.usual("send a heartbeat"), func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, put, s.cfg.Instance, string(labels), text(s.cfg.Version, maxText), momentOrNull(h.StartedAt), h.Stopping,
			s.cfg.Now(), h.Pending, h.AwaitingRetry, h.InFlight, h.Dead, momentOrNull(h.OldestPending), h.SpoolBytes, h.BacklogRows,
			h.Lag.Milliseconds(), h.RejectedRows, h.DroppedRows).Scan(&skewMS, &before, &first)
	})
	if err != nil {
		return Beat{}, err
	}
	s.lookForTwin(before, h.StartedAt)
	skew := time.Duration(skewMS) * time.Millisecond
	if skew.Abs() > skewWorthSaying && s.skewed.CompareAndSwap(false, true) {
		s.cfg.Logger.Warn("the clocks of this machine and of Postgres differ: views of the last hour show another hour; set the clocks",
			"skew_seconds", skew.Seconds())
	} else if skew.Abs() <= skewWorthSaying {
		s.skewed.Store(false)
	}
	return Beat{Skew: skew, New: first}, nil
}

// lookForTwin compares the start that our last heartbeat left with the one that is there now. Only another process with
// the same ID can have replaced it: two Posterns run on copies of one spool, and send its events twice.
func (s *Store) lookForTwin(before *time.Time, ours time.Time) {
	if !s.beaten.Swap(true) || before == nil || before.Equal(moment(ours)) {
		return
	}
	if s.copied.CompareAndSwap(false, true) {
		s.cfg.Logger.Error("another running Postern has this instance's ID, so its spool is a copy: both send the events that were in it, and each"+
			" overwrites what the other reports; stop one of them and give it a spool of its own (spool.dir)",
			"instance_id", s.cfg.Instance, "other_started_at", before.UTC())
	}
}

func cleanLabels(labels map[string]string) map[string]string {
	clean := make(map[string]string, len(labels))
	for k, v := range labels {
		clean[text(k, maxText)] = text(v, maxText)
	}
	return clean
}

// WriteHealth replaces what this instance said of the endpoints in list. Those that it leaves out keep what was said.
func (s *Store) WriteHealth(ctx context.Context, list []Health) error {
	if len(list) == 0 {
		return nil
	}
	refs := make(map[endpointRef]int32, len(list))
	for i := range list {
		refs[list[i].ref()] = 0
	}
	if err := s.endpointIDs(ctx, refs); err != nil {
		return err
	}
	const put = `INSERT INTO instance_endpoint_health AS h (instance_id, endpoint_id, endpoint_name, state, consecutive_failures,
			failure_threshold, opened_at, cooldown_seconds, paused, p50_ms, p95_ms, p99_ms, sample_count)
		SELECT $1::uuid, * FROM unnest($2::integer[], $3::text[], $4::text[], $5::integer[], $6::integer[], $7::timestamptz[],
			$8::float8[], $9::boolean[], $10::float8[], $11::float8[], $12::float8[], $13::bigint[])
		ON CONFLICT (instance_id, endpoint_id, endpoint_name) DO UPDATE SET state = excluded.state,
			consecutive_failures = excluded.consecutive_failures, failure_threshold = excluded.failure_threshold,
			opened_at = excluded.opened_at, cooldown_seconds = excluded.cooldown_seconds, paused = excluded.paused,
			p50_ms = excluded.p50_ms, p95_ms = excluded.p95_ms, p99_ms = excluded.p99_ms, sample_count = excluded.sample_count,
			updated_at = now()`
	args := healthArgs(s.cfg.Instance, list, refs)
	err := s.tx(ctx, s.usual("write the endpoints' health"), func(ctx context.Context, tx pgx.Tx) error {
		if err := confirm(ctx, tx, refs); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, put, args...)
		return err
	})
	if err != nil {
		s.forgetEndpoints()
	}
	return err
}

func (h *Health) ref() endpointRef {
	return refOf(&Row{EndpointName: h.EndpointName, EndpointURL: h.EndpointURL})
}

// healthArgs makes one array per column. An endpoint that is named twice is sent once: the last one counts.
func healthArgs(instance string, list []Health, refs map[endpointRef]int32) []any {
	var (
		ids                  []int32
		names, states        []string
		failures, thresholds []int32
		opened               []*time.Time
		cooldown             []float64
		paused               []bool
		p50, p95, p99        []*float64
		samples              []int64
		seen                 = make(map[endpointRef]bool, len(list))
		ms                   = func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	)
	for i := len(list) - 1; i >= 0; i-- {
		h, ref := &list[i], list[i].ref()
		if seen[ref] {
			continue
		}
		seen[ref] = true
		ids, names, states = append(ids, refs[ref]), append(names, ref.name), append(states, breakerState(h.State))
		failures, thresholds = append(failures, number(h.ConsecutiveFailures)), append(thresholds, number(h.FailureThreshold))
		opened, cooldown = append(opened, momentOrNull(h.OpenedAt)), append(cooldown, max(h.Cooldown, 0).Seconds())
		paused, samples = append(paused, h.Paused), append(samples, int64(max(h.Samples, 0)))
		var q [3]*float64
		if h.Samples > 0 {
			a, b, c := ms(h.P50), ms(h.P95), ms(h.P99)
			q = [3]*float64{&a, &b, &c}
		}
		p50, p95, p99 = append(p50, q[0]), append(p95, q[1]), append(p99, q[2])
	}
	return []any{instance, ids, names, states, failures, thresholds, opened, cooldown, paused, p50, p95, p99, samples}
}

// breakerState keeps words that the table does not know out of it.
func breakerState(word string) string {
	if word == "open" || word == "half_open" {
		return word
	}
	return "closed"
}
