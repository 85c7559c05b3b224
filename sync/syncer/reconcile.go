package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"postern/spool"
	"postern/sync/pgstore"
)

const (
	// checkRows is how many events are compared at a time.
	checkRows = 200
	// checkEvery bounds how often all of them are: events that rightly wait are looked up too.
	checkEvery = 10 * time.Minute
)

// check is where the comparison stands. Rows that had to be dropped can have told the end of an event, which the store
// then takes for unfinished for ever. So the store's unfinished events are compared with the spool's: once after the
// start, and again whenever rows were dropped.
type check struct {
	dropped int64 // rows dropped, as last reported
	done    int64 // as of the last comparison
	began   bool  // after the start
	running bool
	cursor  pgstore.Unfinished
	next    time.Time
}

// reconcile compares one page, when there is cause and the outbox is empty: then a difference is no matter of rows that
// are still on their way. more tells that there are further pages.
func (s *Syncer) reconcile(ctx context.Context, now time.Time) (more bool, err error) {
	c := &s.check
	if s.parts.Events == nil || !c.running && (now.Before(c.next) || c.began && c.dropped == c.done) {
		return false, nil
	}
	if !c.running {
		c.running, c.began, c.done, c.cursor = true, true, c.dropped, pgstore.Unfinished{}
	}
	list, err := s.store.Unfinished(ctx, c.cursor, checkRows)
	if err != nil {
		return false, err
	}
	rows, err := s.finished(list)
	if err != nil {
		return false, err
	}
	if len(rows) > 0 {
		if err := s.store.Correct(ctx, rows); err != nil {
			return false, err
		}
		s.log.Info("put right what Postgres took for unfinished", "events", len(rows))
	}
	if len(list) < checkRows {
		c.running, c.next = false, now.Add(checkEvery)
		return false, nil
	}
	c.cursor = list[len(list)-1]
	return true, nil
}

// finished picks those that are not unfinished any more, with the state that the spool knows.
func (s *Syncer) finished(list []pgstore.Unfinished) (rows []pgstore.Row, err error) {
	for _, u := range list {
		row := pgstore.Row{EventID: u.EventID, CreatedAt: u.CreatedAt, Version: uint64(u.Version)}
		v, err := s.parts.Events.Get(u.EventID, false)
		switch {
		case errors.Is(err, spool.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("look an event up in the spool: %w", err)
		case !v.AcceptedAt.Equal(u.CreatedAt): // the ID is another event's by now
		case v.State == spool.StateDelivered || v.State == spool.StateDeadLetter:
			row.Status, row.Attempts, row.DeliveredAt, row.DeadReason = v.State.String(), v.Attempts, v.DeliveredAt, v.DeadReason
			if n := len(v.History); n > 0 {
				row.Attempt = translateAttempt(&v.History[n-1])
			}
		default:
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}
