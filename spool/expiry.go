package spool

import (
	"time"

	"postern/spool/internal/layout"
)

// An event's TTL passes even while its endpoint is paused, broken or gone, and nobody leases it. The index Expiry leads
// the committer to such events in order of time, so that it looks at none whose time has not come.

// deadline is when an event is given up; ok is false for one without a TTL.
func deadline(ev *Event, since time.Time) (at time.Time, ok bool) {
	return since.Add(ev.TTL).Truncate(time.Microsecond), ev.TTL > 0
}

func (t *txn) putDeadline(ev *Event, since time.Time) {
	if at, ok := deadline(ev, since); ok {
		t.put(layout.Expiry, layout.ExpiryKey(at, ev.Seq), nothing)
	}
}

func (t *txn) delDeadline(ev *Event, since time.Time) {
	if at, ok := deadline(ev, since); ok {
		t.del(layout.Expiry, layout.ExpiryKey(at, ev.Seq))
	}
}

// maxExpiredBytes bounds what one pass holds and writes: heads only, but a head has the whole target.
const maxExpiredBytes = mib

// expireEvents makes dead letters of waiting events whose TTL has passed. One that is out is left to its holder.
func (t *txn) expireEvents() error {
	var keys [][]byte
	c := t.bucket(layout.Expiry).Cursor()
	for k, _ := c.First(); k != nil && len(keys) < t.sweep.size; k, _ = c.Next() {
		at, seq, ok := layout.ParseExpiryKey(k)
		if ok && at.After(t.now) {
			break
		}
		if !ok || !t.s.leases.has(seq) {
			keys = append(keys, append([]byte(nil), k...))
		}
	}
	for _, k := range keys {
		at, seq, ok := layout.ParseExpiryKey(k)
		if t.deadBytes >= maxExpiredBytes {
			break
		}
		if !ok || !t.reserve(seq) {
			continue
		}
		if err := t.expire(seq, at); err != nil {
			return err
		}
		t.del(layout.Expiry, k) // also where it led nowhere: to a record that was set aside
	}
	return nil
}

func (t *txn) expire(seq uint64, at time.Time) error {
	key := layout.SeqKey(seq)
	rec := t.get(layout.Events, key)
	if rec == nil || t.get(layout.Dead, key) != nil {
		return nil
	}
	ev, size, before, err := readWaiting(t.tx, seq, eventTarget, t.ring)
	if err != nil {
		return nil // a damaged record: whoever leases it sets it aside
	}
	t.tellIfLost(ev, &before)
	if due, ok := deadline(ev, before.Since); !ok || !due.Equal(at) {
		t.hints = append(t.hints, t.untold[len(t.untold)-1]) // it waits on, and a Lease meanwhile passed it over
		return nil
	}
	after := before
	after.version++
	after.DeadReason, after.DeadAt, after.NextAttempt = ReasonExpired, t.now.Truncate(time.Microsecond), time.Time{}
	m := move{t: t, ev: ev, size: size, key: key, rec: rec, before: &before, after: &after, stored: true, due: before.NextAttempt}
	m.dead()
	m.outbox(nil)
	t.expired = append(t.expired, &Lease{Event: ev, Progress: after.Progress})
	return t.err
}
