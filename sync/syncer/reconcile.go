package syncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// check is where the comparison stands. What happened while the spool kept no outbox, and rows that had to be dropped, the
// store has not heard of: it may miss an event, or take one for unfinished, or for a dead letter, for ever. So the spool and
// the store are compared: once after the start, once with each new store, when its tables were made anew, and again
// whenever rows were dropped. First goes what the spool has and the store does not know, then what the store has as not
// delivered.
type check struct {
	dropped int64 // rows dropped, as last reported
	done    int64 // as of the last comparison
	began   bool  // with this store
	running bool
	told    bool   // the first half is done
	seq     uint64 // where the first half stands
	cursor  pgstore.Undelivered
	next    time.Time
}

// anew makes the next store be compared from the start.
func (c *check) anew() { *c = check{dropped: c.dropped} }

// reconcile compares one page, when there is cause and the outbox is empty: then a difference is no matter of rows that
// are still on their way. more tells that there are further pages.
func (s *Syncer) reconcile(ctx context.Context, now time.Time) (more bool, err error) {
	c := &s.check
	if s.parts.Events == nil || !c.running && (now.Before(c.next) || c.began && c.dropped == c.done) {
		return false, nil
	}
	if !c.running {
		*c = check{dropped: c.dropped, done: c.dropped, began: true, running: true}
	}
	if !c.told {
		return true, s.tell(ctx)
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

// tell reports one page of what waits in the spool or was given up, as far as the store does not know it. The versions keep
// that apart from what comes through the outbox, whichever is first.
func (s *Syncer) tell(ctx context.Context) error {
	c := &s.check
	rows, next, err := s.parts.Events.Standing(c.seq, checkRows)
	if err != nil {
		return fmt.Errorf("look through the spool: %w", err)
	}
	keys := make([]pgstore.Row, len(rows))
	for i, r := range rows {
		keys[i] = pgstore.Row{EventID: r.EventID, CreatedAt: r.AcceptedAt, Version: r.Version}
	}
	var unknown []spool.OutboxRow
	if len(rows) > 0 {
		places, err := s.store.Unknown(ctx, keys)
		if err != nil {
			return err
		}
		for _, i := range places {
			unknown = append(unknown, rows[i])
		}
	}
	if err := s.tellOf(ctx, unknown); err != nil {
		return err
	}
	c.seq, c.told = next, next == 0
	return nil
}

// tellOf writes what the store does not know. What it refuses is left out: these rows are in no outbox to be set apart from.
func (s *Syncer) tellOf(ctx context.Context, rows []spool.OutboxRow) error {
	if len(rows) == 0 {
		return nil
	}
	poison, err := s.write(ctx, rows)
	if err != nil {
		return err
	}
	if n := len(poison); n > 0 {
		s.log.Error("Postgres refuses events that were in the spool before; they are tried again at the next start",
			slog.Int("events", n), slog.String("event_id", poison[0].row.EventID), slog.Any("error", poison[0].cause))
	}
	if n := len(rows) - len(poison); n > 0 {
		s.log.Info("told Postgres of events in the spool that it did not know", slog.Int("events", n))
	}
	return nil
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
			row.Status, row.Attempts, row.DeliveredAt = v.State.String(), v.Attempts, v.DeliveredAt
			row.DeadReason, row.DeadAt = v.DeadReason, v.DeadAt
			if s.parts.Payload != nil {
				row.Payload = s.parts.Payload(spool.OutboxRow{EventID: u.EventID, State: v.State})
			}
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
