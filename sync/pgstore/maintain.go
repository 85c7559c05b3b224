package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const (
	// leaseSeconds is how long the one who looks after the tables may be silent before another takes over.
	leaseSeconds = 180
	// daysAhead is how many days of partitions are made ahead: a weekend without any instance costs nothing.
	daysAhead = 3
	// maintainLock bounds the wait for a table that somebody reads: the next round comes soon.
	maintainLockMS = 2000
	// pruneRows is how many rows one transaction removes.
	pruneRows = 5000
	// pruneRounds bounds one call; the rest waits for the next.
	pruneRounds = 20
)

// partitioned are the tables with a partition per day.
var partitioned = []string{"webhook_queue", "endpoint_latency", "endpoint_minutes"}

// Maintain makes partitions ahead and drops what is past its retention, if this instance has or gets the lease; held
// tells. It is meant to be called once a minute.
func (s *Store) Maintain(ctx context.Context) (held bool, err error) {
	if held, err = s.lease(ctx); err != nil || !held {
		return held, err
	}
	begin := s.beginWith(s.cfg.Timeout.Milliseconds(), maintainLockMS)
	for _, table := range partitioned {
		err := s.tx(ctx, call{"make partitions of " + table, begin, 2 * s.cfg.Timeout}, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT make_partitions($1::text, $2::integer, $3::interval)`, table, daysAhead, s.cfg.Retention)
			return err
		})
		if err != nil {
			return true, err
		}
		if err := s.dropOld(ctx, begin, table); err != nil {
			return true, err
		}
	}
	for range pruneRounds {
		var n int64
		err := s.tx(ctx, call{"remove old rows", begin, 2 * s.cfg.Timeout}, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT prune($1::interval, $2::integer)`, s.cfg.Retention, pruneRows).Scan(&n)
		})
		if err != nil {
			return true, err
		}
		if n < pruneRows {
			break
		}
	}
	return true, s.tx(ctx, s.usual("note the maintenance"), func(ctx context.Context, tx pgx.Tx) error {
		// What came in since is complete, whatever a clock that was ahead has dropped.
		_, err := tx.Exec(ctx, `UPDATE maintenance SET done_at = now(), raw_from = least(raw_from, now())`)
		return err
	})
}

// lease takes or renews the lease. It goes by the server's clock alone. A lease that reaches further ahead than any can was
// given by a clock that has been set back since.
func (s *Store) lease(ctx context.Context) (held bool, err error) {
	const take = `UPDATE maintenance SET holder = $1::uuid, expires_at = now() + make_interval(secs => $2::float8)
		WHERE holder = $1::uuid OR expires_at < now() OR expires_at > now() + 2 * make_interval(secs => $2::float8)`
	err = s.tx(ctx, s.usual("take the maintenance lease"), func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, take, s.cfg.Instance, leaseSeconds)
		held = tag.RowsAffected() == 1
		return err
	})
	return held, err
}

// dropOld drops one partition per transaction: each locks the table for a moment.
func (s *Store) dropOld(ctx context.Context, begin, table string) error {
	for {
		var dropped *string
		err := s.tx(ctx, call{"drop a partition of " + table, begin, 2 * s.cfg.Timeout}, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT drop_partition($1::text, $2::interval)`, table, s.cfg.Retention).Scan(&dropped)
		})
		if err != nil || dropped == nil {
			return err
		}
		s.cfg.Logger.Info("dropped a partition past its retention", "partition", *dropped)
	}
}
