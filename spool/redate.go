package spool

import (
	"log/slog"
	"time"

	"postern/spool/internal/layout"
)

const (
	// redateLeast is how far the clock must have been set back to be worth a look at every waiting event.
	redateLeast = time.Minute
	// redateStep bounds what one transaction looks at.
	redateStep = 5000
)

// redate brings forward what a clock that was set back since the last run has put into the future: events that were due
// at once, and retries, by as much as the clock was set back. A time that an application named itself stays. It runs at
// opening, before anything is leased.
func (s *Spool) redate() error {
	now := s.now().Round(0)
	back := s.LastSeen().Sub(now)
	if back < redateLeast {
		return nil
	}
	moved, from := 0, []byte(nil)
	for {
		op := &funcOp{fn: func(t *txn) error {
			keys, next := t.dueFrom(from)
			from = next
			for _, k := range keys {
				moved += t.bringForward(k, now, back)
			}
			if next == nil {
				t.counters.lastSeen = now
				t.dirty = true
			}
			return nil
		}}
		if err := s.commit([]operation{op}); err != nil {
			return err
		}
		if from == nil {
			break
		}
	}
	s.cfg.Logger.Warn("the clock was set back since the spool was last written: waiting events were brought forward by as much",
		slog.Float64("seconds", back.Seconds()), slog.Int("events", moved))
	return nil
}

// dueFrom copies the next keys of the due index, and says where to go on; nil at the end.
func (t *txn) dueFrom(from []byte) (keys [][]byte, next []byte) {
	c := t.bucket(layout.Due).Cursor()
	k, _ := c.First()
	if from != nil {
		k, _ = c.Seek(from)
	}
	for ; k != nil; k, _ = c.Next() {
		key := append([]byte(nil), k...)
		if len(keys) == redateStep {
			return keys, key
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// bringForward gives one event another due time, if its present one is the old clock's. It returns how many it moved.
func (t *txn) bringForward(key []byte, now time.Time, back time.Duration) int {
	id, due, seq, ok := layout.ParseDueKey(key)
	if !ok || !due.After(now) {
		return 0
	}
	ev, _, p, err := readWaiting(t.tx, seq, eventHead, nil)
	if err != nil {
		return 0 // whoever leases it sets it aside
	}
	switch n := len(p.History); {
	case n > 0 && p.History[n-1].StartedAt.After(now), p.planned.After(now), p.Since.After(now) && ev.NotBefore.IsZero():
		due = due.Add(-back)
	default:
		return 0
	}
	if due.Before(now) {
		due = now
	}
	p.NextAttempt = due.Truncate(time.Microsecond)
	t.del(layout.Due, key)
	t.put(layout.Due, layout.DueKey(id, p.NextAttempt, seq), nothing)
	t.put(layout.Progress, layout.SeqKey(seq), encodeProgress(&p))
	return 1
}
