package spool

import (
	"fmt"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// Rows of the outbox that the central store will not take are set apart, so that one of them never holds up the others.
// They survive restarts and wait for a person who mends the cause and sends them again.

const (
	// maxRefused bounds how many are kept; beyond it the oldest is dropped and counted as dropped history.
	maxRefused = 1000
	// maxCause bounds the text that is kept beside a row.
	maxCause = 500
)

// RefusedRow is a row that the central store refused.
type RefusedRow struct {
	OutboxRow
	Cause string    // what the store said
	At    time.Time // when
}

// OutboxRefuse takes one row out of the outbox and sets it apart with the cause. It returns when that is on disk. A row
// that is no longer in the outbox is left alone.
func (s *Spool) OutboxRefuse(index uint64, cause string) error {
	return s.do(func(t *txn) error {
		key := layout.SeqKey(index)
		rec := t.get(layout.Outbox, key)
		if rec == nil {
			return nil
		}
		t.dropRefused()
		rec = append([]byte(nil), rec...)
		t.put(layout.Refused, key, encodeRefused(t.now, cause, rec))
		t.del(layout.Outbox, key)
		t.counters.outboxRows--
		t.counters.outboxBytes -= rowBytes(key, rec)
		return nil
	})
}

// dropRefused makes room for one more.
func (t *txn) dropRefused() {
	var keys [][]byte
	c := t.bucket(layout.Refused).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		keys = append(keys, append([]byte(nil), k...))
	}
	for i := 0; i <= len(keys)-maxRefused; i++ {
		t.del(layout.Refused, keys[i])
		t.counters.historyDropped++
	}
}

// Refused returns up to limit of the rows set apart, oldest first, and how many there are.
func (s *Spool) Refused(limit int) (rows []RefusedRow, total int, err error) {
	err = s.store.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(layout.Refused.Name())
		return b.ForEach(func(k, v []byte) error {
			total++
			index, ok := layout.Seq(k)
			if !ok || len(rows) >= limit {
				return nil
			}
			if row, err := decodeRefused(index, v, s.ring()); err == nil {
				rows = append(rows, row)
			}
			return nil
		})
	})
	return rows, total, err
}

// RetryRefused puts all rows that were set apart back into the outbox, behind what waits there, and returns how many.
// The central store goes by the events' versions, so that a late row takes nothing back.
func (s *Spool) RetryRefused() (n int, err error) {
	err = s.do(func(t *txn) error {
		type row struct{ key, rec []byte }
		var rows []row
		c := t.bucket(layout.Refused).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			rows = append(rows, row{append([]byte(nil), k...), append([]byte(nil), v...)})
		}
		for _, r := range rows {
			t.del(layout.Refused, r.key)
			if index, ok := layout.Seq(r.key); ok && t.requeue(index, r.rec) {
				n++
			}
		}
		return nil
	})
	return n, err
}

// requeue puts one row at the end of the outbox; one that cannot be decoded goes.
func (t *txn) requeue(index uint64, rec []byte) bool {
	row, err := decodeRefused(index, rec, t.ring)
	if err != nil {
		return false
	}
	key, value := layout.SeqKey(t.counters.nextOutbox), encodeOutboxRow(&row.OutboxRow, t.ring)
	t.counters.nextOutbox++
	t.counters.outboxRows++
	t.counters.outboxBytes += rowBytes(key, value)
	t.put(layout.Outbox, key, value)
	return true
}

func encodeRefused(at time.Time, cause string, row []byte) []byte {
	cause = strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
	e := layout.NewEncoder(make([]byte, 0, len(row)+len(cause)+32), layout.KindRefused)
	e.Time(at)
	e.String(cause)
	e.Raw(row)
	return e.Record()
}

// refusedRecord is the record of a row that was set apart, taken apart.
type refusedRecord struct {
	at    time.Time
	cause string
	rec   []byte // of the row
}

func splitRefused(index uint64, rec []byte) (r refusedRecord, err error) {
	fields, err := layout.Fields(layout.KindRefused, rec)
	if err != nil {
		return r, fmt.Errorf("refused row %d: %w", index, err)
	}
	d := layout.NewDecoder(string(fields))
	r.at, r.cause = d.Time(), d.String()
	if err := d.Err(); err != nil {
		return r, fmt.Errorf("refused row %d: %w", index, err)
	}
	r.rec = []byte(d.Rest())
	return r, nil
}

func decodeRefused(index uint64, rec []byte, ring *keyring.Ring) (RefusedRow, error) {
	r, err := splitRefused(index, rec)
	if err != nil {
		return RefusedRow{}, err
	}
	row, err := decodeOutboxRow(index, r.rec, ring)
	return RefusedRow{OutboxRow: row, Cause: r.cause, At: r.at}, err
}
