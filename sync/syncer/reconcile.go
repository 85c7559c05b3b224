package syncer

import (
	"context"
	"errors"
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
// then takes for unfinished, or for a dead letter, for ever. So what the store has as not delivered is compared with the
// spool: once after the start, and again whenever rows were dropped.
type check struct {
	dropped int64 // rows dropped, as last reported
	done    int64 // as of the last comparison
	began   bool  // after the start
	running bool
	cursor  pgstore.Undelivered
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
		c.running, c.began, c.done, c.cursor = true, true, c.dropped, pgstore.Undelivered{}
	}
	list, err := s.store.Undelivered(ctx, c.cursor, checkRows)
	if err != nil {
		return false, err
	}
	rows := s.finished(list)
	if len(rows) > 0 {
		if err := s.store.Correct(ctx, rows); err != nil {
			return false, err
		}
		s.log.Info("put right what Postgres did not know the end of", "events", len(rows))
	}
	if len(list) < checkRows {
		c.running, c.next = false, now.Add(checkEvery)
		return false, nil
	}
	c.cursor = list[len(list)-1]
	return true, nil
}

// finished picks those that have ended otherwise, with the state that the spool knows. What cannot be looked up is left as
// it is: one damaged record must not hold up the rows that are still to come.
func (s *Syncer) finished(list []pgstore.Undelivered) (rows []pgstore.Row) {
	var trouble error
	unread := 0
	for _, u := range list {
		row := pgstore.Row{EventID: u.EventID, CreatedAt: u.CreatedAt, Version: uint64(u.Version)}
		v, err := s.parts.Events.Get(u.EventID, false)
		switch {
		case errors.Is(err, spool.ErrNotFound):
		case err != nil:
			trouble, unread = err, unread+1
			continue
		case !v.AcceptedAt.Equal(u.CreatedAt): // the ID is another event's by now
		case v.State.String() != u.Status && (v.State == spool.StateDelivered || v.State == spool.StateDeadLetter):
			row.Status, row.Attempts, row.DeliveredAt, row.DeadReason = v.State.String(), v.Attempts, v.DeliveredAt, v.DeadReason
			if n := len(v.History); n > 0 {
				row.Attempt = translateAttempt(&v.History[n-1])
			}
		default:
			continue
		}
		rows = append(rows, row)
	}
	if trouble != nil {
		s.log.Warn("events could not be looked up in the spool; what Postgres has of them stays as it is", "events", unread, "error", trouble)
	}
	return rows
}
