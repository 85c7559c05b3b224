package spool

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// updater runs a function in a write transaction of its own.
type updater func(fn func(*bolt.Tx) error) error

// rebuilder makes the indexes and counts anew from the records. It works in steps, so that a spool of any size can be
// rebuilt in little memory; the counters are removed first and written last, so that a rebuild that was cut short is
// noticed and repeated.
type rebuilder struct {
	update   updater
	rows     map[string]*endpointRow
	names    map[uint32]string
	counters counters
	// damaged tells that events may be missing: a key whose event left no trace is forgotten then, since the event may
	// have been lost, and to be sent twice is better than never.
	damaged bool
	// nameless are the delivered events whose summary had to go, since it names its endpoint by a number that is unknown.
	nameless seqSet
	counted  bool  // the old counters were found
	aside    int64 // records that this rebuild set aside
	// keys are those that records need: what is noted of them may be lost, and must not be taken for less.
	keys map[keyring.KeyID]bool
}

// rebuildStep is how many rows one transaction takes.
const rebuildStep = 5000

// rebuild returns itself, with the counters that it wrote. damaged tells that it follows a salvage that did not find everything whole.
func rebuild(update updater, damaged bool) (*rebuilder, error) {
	r := &rebuilder{update: update, damaged: damaged, rows: make(map[string]*endpointRow), names: make(map[uint32]string), keys: make(map[keyring.KeyID]bool)}
	steps := []func() error{
		func() error { return update(r.begin) },
		func() error { return r.each(layout.Done, r.done) },
		func() error { return r.each(layout.Events, r.event) },
		func() error { return r.each(layout.Dead, r.orphan(layout.Dead)) },
		func() error { return r.each(layout.Progress, r.orphan(layout.Progress)) },
		func() error { return r.each(layout.Outbox, r.outbox) },
		func() error { return r.each(layout.Refused, r.refused) },
		func() error { return r.idem() },
		func() error { return update(r.finish) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("rebuild the indexes: %w", err)
		}
	}
	return r, nil
}

func (r *rebuilder) begin(tx *bolt.Tx) error {
	if err := makeBuckets(tx); err != nil {
		return err
	}
	meta := tx.Bucket(layout.Meta.Name())
	if old, err := decodeCounters(meta.Get(layout.KeyCounters)); err == nil {
		r.counted = true
		r.counters = counters{
			nextSeq: old.nextSeq, nextEndpoint: old.nextEndpoint, nextOutbox: old.nextOutbox,
			historyDropped: old.historyDropped, setAside: old.setAside, salvageLost: old.salvageLost, lastSeen: old.lastSeen,
		}
	}
	if ids, err := decodeKeys(meta.Get(layout.KeyKeys)); err == nil {
		for _, id := range ids {
			r.keys[id] = true
		}
	}
	if stamp, _, err := splitBlind(meta.Get(layout.KeyBlind)); err == nil {
		r.keys[stamp.KeyID()] = true
	}
	if _, err := layout.Fields(layout.KindInstance, meta.Get(layout.KeyInstance)); err != nil {
		if err := meta.Put(layout.KeyInstance, sealText(layout.KindInstance, uuid.NewString())); err != nil {
			return err
		}
	}
	for _, id := range []layout.Bucket{layout.Due, layout.IDs, layout.Expiry} {
		if err := tx.DeleteBucket(id.Name()); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(id.Name()); err != nil {
			return err
		}
	}
	r.endpoints(tx)
	return meta.Delete(layout.KeyCounters)
}

// endpoints keeps the numbers that summaries refer to; the counts begin at zero.
func (r *rebuilder) endpoints(tx *bolt.Tx) {
	_ = tx.Bucket(layout.Endpoints.Name()).ForEach(func(k, v []byte) error {
		row, err := decodeEndpoint(v)
		if err != nil || r.names[row.id] != "" {
			return nil
		}
		r.rows[string(k)] = &endpointRow{id: row.id, usedAt: row.usedAt}
		r.names[row.id] = string(k)
		r.counters.nextEndpoint = max(r.counters.nextEndpoint, row.id+1)
		return nil
	})
}

// each runs fn over all rows of a bucket. fn may change what it likes but the bucket's other rows.
func (r *rebuilder) each(id layout.Bucket, fn func(tx *bolt.Tx, seq uint64, v []byte) error) error {
	for from, more := uint64(0), true; more; {
		err := r.update(func(tx *bolt.Tx) error {
			var seqs []uint64
			c := tx.Bucket(id.Name()).Cursor()
			more = false
			for k, _ := c.Seek(layout.SeqKey(from)); k != nil; k, _ = c.Next() {
				seq, ok := layout.Seq(k)
				if !ok {
					continue
				}
				if len(seqs) == rebuildStep {
					from, more = seq, true
					break
				}
				seqs = append(seqs, seq)
			}
			for _, seq := range seqs {
				if err := fn(tx, seq, tx.Bucket(id.Name()).Get(layout.SeqKey(seq))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuilder) row(name string) *endpointRow {
	if row := r.rows[name]; row != nil {
		return row
	}
	r.counters.nextEndpoint = max(r.counters.nextEndpoint, 1)
	row := &endpointRow{id: r.counters.nextEndpoint, usedAt: time.Now().Truncate(time.Minute)}
	r.counters.nextEndpoint++
	r.rows[name], r.names[row.id] = row, name
	return row
}

func (r *rebuilder) sawSeq(seq uint64) { r.counters.nextSeq = max(r.counters.nextSeq, seq+1) }

func (r *rebuilder) done(tx *bolt.Tx, seq uint64, v []byte) error {
	r.sawSeq(seq)
	key := layout.SeqKey(seq)
	sum, err := decodeSummary(seq, v)
	if err != nil || r.names[sum.endpoint] == "" {
		if err == nil {
			r.nameless.add(seq)
		}
		return tx.Bucket(layout.Done.Name()).Delete(key)
	}
	ids, id := tx.Bucket(layout.IDs.Name()), layout.PackID(sum.id)
	if ids.Get(id) != nil || anothers(tx, seq, sum.id) {
		return tx.Bucket(layout.Done.Name()).Delete(key) // see event
	}
	r.rows[r.names[sum.endpoint]].done++
	r.counters.doneBytes += rowBytes(key, v)
	return ids.Put(id, key)
}

// anothers tells that an event has this number, and it is not the one with this ID: the key of that one's summary lies.
func anothers(tx *bolt.Tx, seq uint64, id string) bool {
	v := tx.Bucket(layout.Events.Name()).Get(layout.SeqKey(seq))
	if v == nil {
		return false
	}
	ev, _, err := decodeEvent(seq, v, eventHead, nil)
	return err == nil && ev.ID != id
}

func (r *rebuilder) event(tx *bolt.Tx, seq uint64, v []byte) error {
	r.sawSeq(seq)
	key := layout.SeqKey(seq)
	events := tx.Bucket(layout.Events.Name())
	if tx.Bucket(layout.Done.Name()).Get(key) != nil {
		return events.Delete(key) // it was delivered: sending it again helps nobody
	}
	ev, _, err := decodeEvent(seq, v, eventHead, nil)
	if err != nil {
		r.counters.setAside++
		r.aside++
		if err := tx.Bucket(layout.Aside.Name()).Put(key, append([]byte(nil), v...)); err != nil {
			return err
		}
		return events.Delete(key)
	}
	id := layout.PackID(ev.ID)
	if tx.Bucket(layout.IDs.Name()).Get(id) != nil {
		return events.Delete(key) // the same event once more, found under a number that a damaged key gave it
	}
	r.needs(layout.Events, seq, v)
	if err := tx.Bucket(layout.IDs.Name()).Put(id, key); err != nil {
		return err
	}
	row := r.row(ev.Endpoint)
	if rec := tx.Bucket(layout.Dead.Name()).Get(key); rec != nil {
		if _, err := decodeDead(seq, rec); err == nil {
			row.count(StateDeadLetter, 1, eventBytes(v))
			return nil
		}
	}
	p := initialProgress(ev)
	if stored, err := decodeProgress(seq, tx.Bucket(layout.Progress.Name()).Get(key)); err == nil {
		p = stored
	}
	row.count(stateOf(&p), 1, eventBytes(v))
	if at, ok := deadline(ev, p.Since); ok {
		if err := tx.Bucket(layout.Expiry.Name()).Put(layout.ExpiryKey(at, seq), nothing); err != nil {
			return err
		}
	}
	return tx.Bucket(layout.Due.Name()).Put(layout.DueKey(row.id, p.NextAttempt, seq), nothing)
}

// orphan removes what cannot be decoded or has lost its event, and the progress of what is a dead letter.
func (r *rebuilder) orphan(id layout.Bucket) func(tx *bolt.Tx, seq uint64, v []byte) error {
	return func(tx *bolt.Tx, seq uint64, v []byte) error {
		r.sawSeq(seq)
		key := layout.SeqKey(seq)
		_, err := decodeProgress(seq, v)
		if id == layout.Dead {
			_, err = decodeDead(seq, v)
		} else if tx.Bucket(layout.Dead.Name()).Get(key) != nil {
			err = layout.ErrCorrupt
		}
		if err == nil && tx.Bucket(layout.Events.Name()).Get(key) != nil {
			r.needs(id, seq, v)
			return nil
		}
		return tx.Bucket(id.Name()).Delete(key)
	}
}

func (r *rebuilder) outbox(tx *bolt.Tx, index uint64, v []byte) error {
	r.counters.nextOutbox = max(r.counters.nextOutbox, index+1)
	key := layout.SeqKey(index)
	if _, err := splitRow(index, v); err != nil {
		return tx.Bucket(layout.Outbox.Name()).Delete(key)
	}
	r.needs(layout.Outbox, index, v)
	r.counters.outboxRows++
	r.counters.outboxBytes += rowBytes(key, v)
	return nil
}

func (r *rebuilder) refused(_ *bolt.Tx, index uint64, v []byte) error {
	r.needs(layout.Refused, index, v)
	return nil
}

// needs notes the key that a row needs, if it needs one.
func (r *rebuilder) needs(id layout.Bucket, seq uint64, v []byte) {
	if key, ok := keyOf(id, seq, v); ok {
		r.keys[key] = true
	}
}

// idem makes the queue of expiry anew.
func (r *rebuilder) idem() error {
	return r.update(func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket(layout.IdemQueue.Name()); err != nil {
			return err
		}
		queue, err := tx.CreateBucket(layout.IdemQueue.Name())
		if err != nil {
			return err
		}
		var bad [][]byte
		idem, ids := tx.Bucket(layout.Idem.Name()), tx.Bucket(layout.IDs.Name())
		err = idem.ForEach(func(k, v []byte) error {
			entry, err := decodeIdem(v)
			if err != nil || r.damaged && ids.Get(layout.PackID(entry.id)) == nil {
				bad = append(bad, append([]byte(nil), k...))
				return nil
			}
			r.counters.idemBytes += idemBytes(v)
			return queue.Put(idemQueueKey(entry.at, k), nothing)
		})
		for _, k := range bad {
			if err == nil {
				err = idem.Delete(k)
			}
		}
		return err
	})
}

func (r *rebuilder) finish(tx *bolt.Tx) error {
	c := &r.counters
	c.nextSeq, c.nextOutbox, c.nextEndpoint = max(c.nextSeq, 1), max(c.nextOutbox, 1), max(c.nextEndpoint, 1)
	b := tx.Bucket(layout.Endpoints.Name())
	for name, row := range r.rows {
		if err := b.Put([]byte(name), encodeEndpoint(row)); err != nil {
			return err
		}
	}
	meta := tx.Bucket(layout.Meta.Name())
	if err := meta.Put(layout.KeyKeys, encodeKeys(slices.Collect(maps.Keys(r.keys)))); err != nil {
		return err
	}
	return meta.Put(layout.KeyCounters, encodeCounters(c))
}
