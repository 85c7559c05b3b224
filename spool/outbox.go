package spool

import (
	"strings"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// outbox adds a row for the central store. What is common to all rows of an event is filled in here.
func (t *txn) outbox(ev *Event, p *progress, row OutboxRow) {
	if !t.s.cfg.Outbox {
		return
	}
	row.EventID, row.Version = ev.ID, p.version
	row.Endpoint, row.Named, row.Target = ev.Endpoint, ev.Named, shownTarget(ev)
	row.Attempts, row.MaxAttempts = p.Attempts, ev.MaxAttempts
	row.AcceptedAt = ev.AcceptedAt
	key := layout.SeqKey(t.counters.nextOutbox)
	rec := encodeOutboxRow(&row, t.ring)
	t.counters.nextOutbox++
	t.counters.outboxRows++
	t.counters.outboxBytes += rowBytes(key, rec)
	t.put(layout.Outbox, key, rec)
}

// outboxTakes tells whether a body goes along with the row of its event's acceptance.
func (c Config) outboxTakes(body []byte) bool {
	return c.Outbox && c.OutboxBodies && len(body) > 0 && int64(len(body)) < c.outboxLimit()/2
}

// lastVersion is that of a deletion whose event's versions are forgotten: nothing comes after it.
const lastVersion = 1 << 62

// outboxForgotten tells the central store that a person deleted a delivered event.
func (t *txn) outboxForgotten(seq uint64, rec []byte) {
	sum, err := decodeSummary(seq, rec)
	if err != nil {
		return
	}
	ev := &Event{ID: sum.id, Endpoint: t.s.endpointName(sum.endpoint), Named: sum.named, AcceptedAt: sum.acceptedAt}
	p := &progress{Progress: Progress{Attempts: sum.attempts}, version: lastVersion}
	t.outbox(ev, p, OutboxRow{Deleted: true, DeliveredAt: sum.deliveredAt})
}

// shownTarget is what of the target may leave this machine: the path below a named endpoint, and of an ad hoc target
// nothing that its endpoint does not say.
func shownTarget(ev *Event) string {
	if !ev.Named {
		return ""
	}
	path, _, _ := strings.Cut(ev.Target, "?")
	return path
}

// outboxReadBytes bounds what one Outbox call holds in memory where rows have bodies.
const outboxReadBytes = 8 * mib

// Outbox returns up to max of the oldest rows, in the order in which they were committed, and fewer where their bodies are
// big; more tells that there are further ones. A row that cannot be decoded is left out; the next OutboxDone removes it.
func (s *Spool) Outbox(max int) (rows []OutboxRow, more bool, err error) {
	err = s.store.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(layout.Outbox.Name()).Cursor()
		bytes := 0
		k, v := c.First()
		for ; k != nil && len(rows) < max && (len(rows) == 0 || bytes < outboxReadBytes); k, v = c.Next() {
			index, ok := layout.Seq(k)
			if bytes += len(v); !ok {
				continue
			}
			if row, err := decodeOutboxRow(index, v, s.ring()); err == nil {
				rows = append(rows, row)
			}
		}
		more = k != nil
		return nil
	})
	return rows, more, err
}

// outboxDoneStep bounds how many rows one transaction removes.
const outboxDoneStep = 2000

// OutboxDone removes the rows up to and including an index: the central store has them. It returns when that is on disk.
func (s *Spool) OutboxDone(upTo uint64) error {
	for {
		var more bool
		err := s.do(func(t *txn) error {
			removed := t.dropOutbox(outboxDoneStep, func(index uint64) bool { return index <= upTo })
			more = removed == outboxDoneStep
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
}

// dropOutbox removes up to limit rows from the old end while ok says so.
func (t *txn) dropOutbox(limit int, ok func(index uint64) bool) int {
	var keys [][]byte
	var size int64
	c := t.bucket(layout.Outbox).Cursor()
	for k, v := c.First(); k != nil && len(keys) < limit; k, v = c.Next() {
		index, valid := layout.Seq(k)
		if valid && !ok(index) {
			break
		}
		keys = append(keys, append([]byte(nil), k...))
		size += rowBytes(k, v)
	}
	// The cursor is not moved while its bucket changes.
	for _, k := range keys {
		t.del(layout.Outbox, k)
	}
	t.counters.outboxRows -= int64(len(keys))
	t.counters.outboxBytes -= size
	return len(keys)
}
