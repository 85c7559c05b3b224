package spool

import (
	"encoding/binary"
	"time"

	"postern/spool/internal/layout"
)

// sweep remembers where the passes over old rows stand.
type sweep struct {
	done, dead uint64
	size       int  // how many rows of a kind one pass removes
	warned     bool // that keys are forgotten before their time
}

// smaller is for a disk or file without room: what a pass needs of it goes with what it removes.
func (sw *sweep) smaller() { sw.size = max(sw.size/2, 1) }

func (sw *sweep) bigger() { sw.size = min(2*sw.size, sweepDrops) }

// sweepOp removes what has outlived its retention, a little at a time.
type sweepOp struct{ s *Spool }

func (op sweepOp) settle(error)  {}
func (op sweepOp) size() int     { return 0 }
func (op sweepOp) lasting() bool { return false }

func (op sweepOp) apply(t *txn) error {
	t.expireKeys(8 * t.sweep.size)
	t.expireSummaries()
	t.expireDead()
	t.expireEndpoints()
	return t.expireEvents()
}

// expireKeys forgets the keys whose window has passed, and the oldest where there are too many, up to a number of them.
func (t *txn) expireKeys(upTo int) {
	limit := t.s.cfg.dedupeLimit()
	var keys [][]byte
	early := false
	c := t.bucket(layout.IdemQueue).Cursor()
	over := t.counters.idemBytes
	for k, _ := c.First(); len(k) > 8 && len(keys) < upTo; k, _ = c.Next() {
		at := layout.FromMicros(binary.BigEndian.Uint64(k))
		if t.now.Sub(at) < t.s.cfg.DedupeWindow {
			if over <= limit {
				break
			}
			early = true
		}
		if rec := t.get(layout.Idem, k[8:]); rec != nil {
			over -= idemBytes(rec)
		}
		keys = append(keys, append([]byte(nil), k...))
	}
	if early && !t.sweep.warned {
		t.sweep.warned = true
		t.s.cfg.Logger.Warn("more idempotency keys arrive than an eighth of spool.max_bytes can remember for " +
			"spool.dedupe_window: the oldest are forgotten early")
	}
	for _, k := range keys {
		at, hash := layout.FromMicros(binary.BigEndian.Uint64(k)), k[8:]
		entry, err := decodeIdem(t.get(layout.Idem, hash))
		if err != nil || entry.at.Equal(at) {
			t.forget(hash)
		}
		t.del(layout.IdemQueue, k)
	}
}

// scanFrom looks at up to sweepRows rows from a place on and returns those that are to go, and where to go on.
func (t *txn) scanFrom(id layout.Bucket, from uint64, old func(seq uint64, v []byte) bool) (seqs []uint64, next uint64) {
	c := t.bucket(id).Cursor()
	n := 0
	for k, v := c.Seek(layout.SeqKey(from)); k != nil; k, v = c.Next() {
		seq, ok := layout.Seq(k)
		if n++; n > sweepRows || len(seqs) >= t.sweep.size {
			return seqs, seq
		}
		if ok && old(seq, v) {
			seqs = append(seqs, seq)
		}
	}
	return seqs, 0
}

func (t *txn) expireSummaries() {
	keep := t.s.cfg.DeliveredRetention
	seqs, next := t.scanFrom(layout.Done, t.sweep.done, func(seq uint64, v []byte) bool {
		at, err := summaryTime(seq, v)
		return err != nil || t.now.Sub(at) >= keep
	})
	t.sweep.done = next
	for _, seq := range seqs {
		t.dropSummary(seq, t.get(layout.Done, layout.SeqKey(seq)))
	}
}

func (t *txn) expireDead() {
	keep := t.s.cfg.DeadLetterRetention
	seqs, next := t.scanFrom(layout.Dead, t.sweep.dead, func(seq uint64, v []byte) bool {
		dl, err := decodeDead(seq, v)
		return err == nil && t.now.Sub(dl.DeadAt) >= keep
	})
	t.sweep.dead = next
	for _, seq := range seqs {
		t.expireOne(seq)
	}
}

func (t *txn) expireOne(seq uint64) {
	key := layout.SeqKey(seq)
	dl, err := decodeDead(seq, t.get(layout.Dead, key))
	if err != nil || !t.reserve(seq) {
		return
	}
	if rec := t.get(layout.Events, key); rec != nil {
		t.endpoint(dl.event.Endpoint).count(StateDeadLetter, -1, eventBytes(rec))
		if ev, _, err := decodeEvent(seq, rec, eventHeaders, t.ring); err == nil {
			t.forgetKeys(ev)
		}
		t.del(layout.Events, key)
	}
	t.del(layout.Dead, key)
	t.del(layout.IDs, layout.PackID(dl.event.ID))
	// The central store drops it too: its dead letters are those that can still be sent again.
	p := dl.progress
	p.version++
	t.outbox(&dl.event, &p, OutboxRow{Deleted: true, DeadReason: p.DeadReason})
}

// expireEndpoints forgets the endpoints that nothing refers to any more. What the limiter stored under the same name is not
// looked at, since only the limiter knows whether it says something, such as a pause: it is there until its owner removes
// it, with or without a row, and a row is made anew when an event comes.
func (t *txn) expireEndpoints() {
	for _, name := range t.s.idleEndpoints(t.now, t.sweep.size) {
		if _, touched := t.rows[name]; !touched {
			t.rows[name], t.dirty = nil, true
		}
	}
}

// idleEndpoints returns up to limit endpoints that have had nothing for a while.
func (s *Spool) idleEndpoints(now time.Time, limit int) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, row := range s.rows {
		if len(names) == limit {
			break
		}
		if !row.live() && now.Sub(row.usedAt) >= endpointIdle {
			names = append(names, name)
		}
	}
	return names
}
