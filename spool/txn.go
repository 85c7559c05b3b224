package spool

import (
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// txn is the work of one transaction: what is to be written, and what memory is to become once it is on disk. Nothing
// that the spool holds in memory moves before the commit; a txn that fails is simply forgotten.
type txn struct {
	s       *Spool
	tx      *bolt.Tx
	buckets [layout.NumBuckets]*bolt.Bucket
	now     time.Time
	ring    *keyring.Ring // the keys in force
	blind   blindKey
	err     error // the first error of bbolt; the transaction is lost with it
	dirty   bool

	counters   counters
	rows       map[string]*endpointRow // touched ones; nil: removed
	minute     HourStats               // to be added to the present minute
	fresh      []*Lease                // handed out with the commit
	hints      []Committed
	ended      []uint64    // leases that end with the commit
	expired    []*Lease    // events whose TTL passed while they waited
	reserved   []uint64    // events that nobody may lease until the transaction has ended
	untold     []Committed // what to say of them if it fails: a Lease meanwhile passed them over
	deadBytes  int         // of records of dead letters
	pendedAt   uint64      // lowest sequence number that became pending again; 0: none
	room       *room
	sweep      sweep
	keys       int             // how many were remembered
	keyIDs     []keyring.KeyID // what is noted of the spool's keys; nil: no change
	newBlind   blindKey
	newRing    *keyring.Ring // to be in force from the next transaction on; nil: no change
	copyWanted bool          // free pages have what is to be gone
	results    int           // how many were recorded
	deferred   []operation   // accepts that are to be tried again
	wanted     int64         // bytes of history that they asked for
	gaveWay    int64         // bytes of history dropped for them
	scratch    []byte        // for one key at a time: bbolt keeps none that it is given
}

// nothing is the value of a row whose key says it all. It is not nil: a nil value reads as a missing row.
var nothing = []byte{}

// fillPercent suits buckets whose keys ascend: pages stay full instead of half full.
var fillPercent = [layout.NumBuckets]float64{
	layout.Events: 0.95, layout.Done: 0.95, layout.Outbox: 0.95, layout.IdemQueue: 0.9, layout.IDs: 0.9,
	layout.Dead: 0.9, layout.Progress: 0.8, layout.Due: 0.8, layout.Idem: 0.7,
}

func (s *Spool) newTxn(tx *bolt.Tx) *txn {
	t := &txn{s: s, tx: tx, now: s.now(), ring: s.ring(), blind: s.blind(), rows: make(map[string]*endpointRow), room: s.room}
	t.room.begin()
	t.sweep = s.sweep
	s.mu.Lock()
	t.counters = s.counters
	s.mu.Unlock()
	return t
}

// bucket opens a bucket at its first use: a transaction touches few of them.
func (t *txn) bucket(id layout.Bucket) *bolt.Bucket {
	if b := t.buckets[id]; b != nil {
		return b
	}
	b := t.tx.Bucket(id.Name())
	if b == nil {
		panic(fmt.Sprintf("bucket %s is gone", id))
	}
	if f := fillPercent[id]; f > 0 {
		b.FillPercent = f
	}
	t.buckets[id] = b
	return b
}

func (t *txn) get(id layout.Bucket, key []byte) []byte { return t.bucket(id).Get(key) }

func (t *txn) put(id layout.Bucket, key, value []byte) {
	t.dirty = true
	t.s.compaction.note(id, key)
	if err := t.bucket(id).Put(key, value); err != nil && t.err == nil {
		t.err = fmt.Errorf("put in %s: %w", id, err)
	}
}

func (t *txn) del(id layout.Bucket, key []byte) {
	t.dirty = true
	t.s.compaction.note(id, key)
	if err := t.bucket(id).Delete(key); err != nil && t.err == nil {
		t.err = fmt.Errorf("delete from %s: %w", id, err)
	}
}

// putDue and delDue keep the index of what waits.
func (t *txn) putDue(row *endpointRow, due time.Time, seq uint64) {
	t.scratch = layout.AppendDueKey(t.scratch[:0], row.id, due, seq)
	t.put(layout.Due, t.scratch, nothing)
}

func (t *txn) delDue(row *endpointRow, due time.Time, seq uint64) {
	t.scratch = layout.AppendDueKey(t.scratch[:0], row.id, due, seq)
	t.del(layout.Due, t.scratch)
}

// endpoint returns the row of an endpoint for changing; it is made where there is none.
func (t *txn) endpoint(name string) *endpointRow {
	if row := t.rows[name]; row != nil {
		return row
	}
	row := &endpointRow{}
	if old := t.s.endpointRow(name); old != nil {
		*row = *old
	} else {
		row.id = t.counters.nextEndpoint
		t.counters.nextEndpoint++
	}
	row.usedAt = t.now.Truncate(time.Minute)
	t.rows[name] = row
	return row
}

// peekEndpoint returns the row as the transaction sees it, or nil, without claiming a change.
func (t *txn) peekEndpoint(name string) *endpointRow {
	if row, touched := t.rows[name]; touched {
		return row
	}
	return t.s.endpointRow(name)
}

// flush writes the rows and counters that the operations changed.
func (t *txn) flush() error {
	if !t.dirty {
		return nil
	}
	for name, row := range t.rows {
		if row == nil {
			t.del(layout.Endpoints, []byte(name))
			continue
		}
		t.put(layout.Endpoints, []byte(name), encodeEndpoint(row))
	}
	if t.minute != (HourStats{}) {
		t.putMinute()
	}
	t.noteTime()
	t.put(layout.Meta, layout.KeyCounters, encodeCounters(&t.counters))
	return t.err
}

// rowBytes is what a row of history is taken to cost: its key, its value and bbolt's element.
func rowBytes(key, value []byte) int64 { return int64(len(key) + len(value) + 16) }

// eventOverhead is what an event costs beside its record: its entries in the indexes and the elements around them.
const eventOverhead = 160

func eventBytes(rec []byte) int64 { return int64(len(rec)) + eventOverhead }

// count moves an event from or to the counts of its endpoint; n is 1 or -1.
func (r *endpointRow) count(st State, n, bytes int64) {
	switch st {
	case StatePending, StateInFlight:
		r.pending += n
	case StateFailed:
		r.failed += n
	case StateDeadLetter:
		r.dead += n
	case StateDelivered:
		r.done += n
		return
	}
	r.bytes += n * bytes
}
