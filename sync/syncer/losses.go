package syncer

import (
	"log/slog"
	"time"

	"postern/spool"
)

// sayLossEvery bounds how often an outage that outlasts the room for its rows is told.
const sayLossEvery = 15 * time.Minute

// losses counts the rows that the spool dropped before they could be carried. They show as a gap in front of the oldest row
// that is left, since indexes have none otherwise. The metric and instances.dropped_rows count all history that was dropped;
// these are the rows that the fleet will miss.
type losses struct {
	next   uint64 // the index that the oldest row should have; 0: not known
	unsaid int64
	saidAt time.Time
}

// oldest takes a look at the rows that wait, the oldest of them first.
func (l *losses) oldest(rows []spool.OutboxRow) {
	if len(rows) == 0 {
		return
	}
	if first := rows[0].Index; l.next != 0 && first > l.next {
		l.unsaid += int64(first - l.next)
	}
	l.next = rows[0].Index
}

// carried notes that all rows up to one have left the outbox in good order.
func (l *losses) carried(upTo uint64) { l.next = upTo + 1 }

// blur notes that rows are being taken out of the order: what is missing in front is not lost.
func (l *losses) blur() { l.next = 0 }

// peek looks whether rows were dropped while none could be carried.
func (s *Syncer) peek() {
	if rows, _, err := s.parts.Outbox.Outbox(1); err == nil {
		s.losses.oldest(rows)
	}
}

// sayLosses tells of rows that were dropped, at once and then once in a while; at an outage's end it tells the rest.
func (s *Syncer) sayLosses(now time.Time, end bool) {
	l := &s.losses
	if l.unsaid == 0 || !end && now.Sub(l.saidAt) < sayLossEvery {
		return
	}
	s.log.Warn("rows that waited for Postgres were dropped for want of room, the oldest first: deliveries are not affected, the fleet's history has a gap",
		slog.Int64("rows", l.unsaid))
	l.unsaid, l.saidAt = 0, now
}
