package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// When history had to be dropped on the way here, the store still takes events for unfinished that are finished, and for
// dead letters what was sent again or removed. Whoever knows better lists them with Undelivered and puts them right with
// Correct. What the store has not heard of at all, since it happened before there was a store, is found with Unknown and
// written like anything else.

// Undelivered is an event of this instance that the store does not take for delivered.
type Undelivered struct {
	EventID   string
	CreatedAt time.Time
	Version   int64
	Status    string
}

// Undelivered returns the instance's events behind after that are not delivered, oldest first, at most limit of them. The
// zero value begins at the start.
func (s *Store) Undelivered(ctx context.Context, after Undelivered, limit int) ([]Undelivered, error) {
	const q = `SELECT event_id, created_at, version, status FROM webhook_queue
		WHERE instance_id = $1::uuid AND status <> 'delivered' AND (created_at, event_id) > ($2::timestamptz, $3::text)
		ORDER BY created_at, event_id LIMIT $4::integer`
	return collect[Undelivered](ctx, s, "read what is not delivered", q, s.cfg.Instance, moment(after.CreatedAt), after.EventID, limit)
}

// Unknown returns the places of those rows whose event the store has never heard of, or only of an earlier version. Of a row
// its key and version count.
func (s *Store) Unknown(ctx context.Context, rows []Row) (places []int, err error) {
	const q = `SELECT (v.place - 1)::integer FROM unnest($2::text[], $3::timestamptz[], $4::bigint[]) WITH ORDINALITY v(event_id, created_at, version, place)
		WHERE NOT EXISTS (SELECT FROM webhook_queue q WHERE q.instance_id = $1::uuid AND q.event_id = v.event_id
			AND q.created_at = v.created_at AND q.version >= v.version)
		AND NOT EXISTS (SELECT FROM deleted_events d WHERE d.instance_id = $1::uuid AND d.event_id = v.event_id
			AND d.created_at = v.created_at AND d.version >= v.version)
		ORDER BY v.place`
	var keys keyArrays
	for i := range rows {
		keys.add(text(rows[i].EventID, maxKey), moment(rows[i].CreatedAt), rows[i].Version)
	}
	type found struct{ Place int }
	list, err := collect[found](ctx, s, "look for what is not known yet", q, s.cfg.Instance, keys.event, keys.created, keys.version)
	for _, f := range list {
		places = append(places, f.Place)
	}
	return places, err
}

// Correct gives events the state in rows, where the stored version is still the row's: whatever has arrived since knows
// better. A row without a status removes its event. Attempts are not counted.
func (s *Store) Correct(ctx context.Context, rows []Row) error {
	live, gone := fold(rows, s.cfg.KeepBodies)
	return s.tx(ctx, s.usual("correct the state of events"), func(ctx context.Context, tx pgx.Tx) error {
		if len(live) > 0 {
			q := queueColumns(live, nil, s.cfg.Now())
			const put = `UPDATE webhook_queue q SET status = v.status, attempt_count = v.attempts, next_attempt_at = NULL, delivered_at = v.delivered_at,
					last_error = v.last_error, last_status_code = v.last_status, last_response_ms = v.last_ms,
					last_attempt_at = coalesce(v.last_at, q.last_attempt_at), dead_reason = v.reason, dead_at = v.dead_at, updated_at = now(),
					payload = CASE WHEN $15::boolean THEN coalesce(v.payload::jsonb, q.payload) ELSE v.payload::jsonb END
				FROM unnest($2::text[], $3::timestamptz[], $4::bigint[], $5::text[], $6::integer[], $7::timestamptz[], $8::text[], $9::integer[],
					$10::integer[], $11::timestamptz[], $12::text[], $13::timestamptz[], $14::text[])
					v(event_id, created_at, version, status, attempts, delivered_at, last_error, last_status, last_ms, last_at, reason, dead_at, payload)
				WHERE q.instance_id = $1::uuid AND q.event_id = v.event_id AND q.created_at = v.created_at AND q.version = v.version`
			_, err := tx.Exec(ctx, put, s.cfg.Instance, q.event, q.created, q.version, q.status, q.attempts, q.done, q.lastError,
				q.lastStatus, q.lastMS, q.lastAt, q.reason, q.deadAt, q.payload, s.cfg.KeepBodies)
			if err != nil {
				return err
			}
		}
		if len(gone) == 0 {
			return nil
		}
		keys := keysOf(gone)
		const remove = `DELETE FROM webhook_queue q USING unnest($2::text[], $3::timestamptz[], $4::bigint[]) d(event_id, created_at, version)
			WHERE q.instance_id = $1::uuid AND q.event_id = d.event_id AND q.created_at = d.created_at AND q.version = d.version`
		_, err := tx.Exec(ctx, remove, s.cfg.Instance, keys.event, keys.created, keys.version)
		return err
	})
}
