package spool

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"postern/spool/internal/layout"
)

// Deduplication happens inside the transaction, so that of two twins that arrive together only one is accepted. A key is
// remembered for the dedupe window; an event ID chosen by the application is also found for as long as anything of its
// event is left.

const fingerprintLen = 16

// fingerprint tells two requests apart that came with one key.
func fingerprint(ev *Event) []byte {
	h := sha256.New()
	var named byte
	if ev.Named {
		named = 1
	}
	head := binary.AppendUvarint(nil, uint64(len(ev.Method)))
	head = append(head, ev.Method...)
	head = binary.AppendUvarint(append(head, named), uint64(len(ev.Target)))
	head = append(head, ev.Target...)
	h.Write(head)
	h.Write(ev.Body)
	return h.Sum(nil)[:fingerprintLen]
}

// keyHash is where a key is remembered. An idempotency key counts per endpoint, an event ID in the whole spool.
func keyHash(kind byte, endpoint, key string) []byte {
	buf := binary.AppendUvarint([]byte{kind}, uint64(len(endpoint)))
	buf = append(append(buf, endpoint...), key...)
	sum := sha256.Sum256(buf)
	return sum[:16]
}

const (
	kindEventID        = 0
	kindIdempotencyKey = 1
)

// keyHashes returns where the event's keys are remembered, but for the spool's secret (blindKey).
func keyHashes(ev *Event) (list [][]byte) {
	if ev.ExplicitID {
		list = append(list, keyHash(kindEventID, "", ev.ID))
	}
	if ev.IdempotencyKey != "" {
		list = append(list, keyHash(kindIdempotencyKey, ev.Endpoint, ev.IdempotencyKey))
	}
	return list
}

// findDuplicate returns the answer for an event that is in the spool already, or the error for one that only looks so.
func (t *txn) findDuplicate(op *appendOp) (*AppendResult, error) {
	if op.ev.ExplicitID || !layout.IsUUID(op.ev.ID) { // a UUID that was made for this event is new
		if first, err := t.traceOfID(op); first != nil || err != nil {
			return first, err
		}
	}
	for _, sum := range keyHashes(op.ev) {
		for _, hash := range t.blind.forms(sum) {
			if entry := t.remembered(hash); entry != nil {
				return t.compare(op, entry)
			}
		}
	}
	return nil, nil
}

// remembered returns what is known of a key, nil where it is unknown or too old. A damaged entry is as good as none, and
// so is that of an event that was set aside: it is never sent, and whoever sends it again must not hear that it will be.
func (t *txn) remembered(hash []byte) *idemEntry {
	rec := t.get(layout.Idem, hash)
	if rec == nil {
		return nil
	}
	entry, err := decodeIdem(rec)
	if err != nil || t.now.Sub(entry.at) >= t.s.cfg.DedupeWindow || t.isAside(t.get(layout.IDs, layout.PackID(entry.id))) {
		return nil
	}
	return entry
}

func (t *txn) compare(op *appendOp, first *idemEntry) (*AppendResult, error) {
	switch {
	case first.endpoint != op.ev.Endpoint:
		return nil, ErrIDTaken
	case !t.blind.same(first.fingerprint, op.print()):
		return nil, ErrReused
	}
	return &AppendResult{ID: first.id, Endpoint: first.endpoint, State: t.stateOf(first.id), Duplicate: true}, nil
}

func (op *appendOp) print() []byte {
	if op.fingerprint == nil {
		op.fingerprint = fingerprint(op.ev)
	}
	return op.fingerprint
}

// traceOfID looks for an event with the same ID, whatever its age.
func (t *txn) traceOfID(op *appendOp) (*AppendResult, error) {
	key := t.get(layout.IDs, layout.PackID(op.ev.ID))
	seq, ok := layout.Seq(key)
	if !ok || t.isAside(key) {
		return nil, nil
	}
	trace := &idemEntry{id: op.ev.ID}
	if rec := t.get(layout.Done, key); rec != nil {
		sum, err := decodeSummary(seq, rec)
		if err != nil {
			return nil, ErrReused
		}
		trace.endpoint, trace.fingerprint = t.s.endpointName(sum.endpoint), sum.fingerprint
		return t.compare(op, trace)
	}
	ev, _, err := decodeEvent(seq, t.get(layout.Events, key), eventPayload, t.ring)
	if err != nil {
		return nil, ErrReused
	}
	trace.endpoint, trace.fingerprint = ev.Endpoint, fingerprint(ev)
	return t.compare(op, trace)
}

// isAside tells that a record could not be decoded and was put apart; key is its place, nil for an unknown event.
func (t *txn) isAside(key []byte) bool { return key != nil && t.get(layout.Aside, key) != nil }

// stateOf is where an event stands that was seen before. One without any trace was delivered and its summary is gone:
// whatever else ends an event forgets its keys (forgetKeys, rebuilder.idem), so that nobody asks for its state.
func (t *txn) stateOf(id string) State {
	key := t.get(layout.IDs, layout.PackID(id))
	seq, ok := layout.Seq(key)
	switch {
	case !ok || t.get(layout.Done, key) != nil:
		return StateDelivered
	case t.get(layout.Dead, key) != nil:
		return StateDeadLetter
	case t.s.isInFlight(seq):
		return StateInFlight
	}
	if p, err := t.storedProgress(seq); err == nil && p != nil && p.tried() {
		return StateFailed
	}
	return StatePending
}

// remember notes the event's keys for the dedupe window.
func (t *txn) remember(op *appendOp) {
	if t.s.cfg.DedupeWindow <= 0 {
		return
	}
	for _, sum := range keyHashes(op.ev) {
		hash := t.blind.hash(sum)
		rec := encodeIdem(&idemEntry{
			id: op.ev.ID, endpoint: op.ev.Endpoint, fingerprint: t.blind.hash(op.print()), at: t.now.Truncate(time.Microsecond),
		})
		t.forget(hash)
		t.put(layout.Idem, hash, rec)
		t.put(layout.IdemQueue, idemQueueKey(t.now, hash), nothing)
		t.counters.idemBytes += idemBytes(rec)
		t.keys++
	}
}

// forgetKeys lets the keys of an event be used anew that goes without having been delivered: whoever sends it again
// means it, and the answer "delivered" would lose it without a word. ev has its headers.
func (t *txn) forgetKeys(ev *Event) {
	keyed := *ev
	for _, h := range ev.Headers {
		if strings.EqualFold(h.Name, "Idempotency-Key") {
			keyed.IdempotencyKey = h.Value
		}
	}
	for _, sum := range keyHashes(&keyed) {
		for _, hash := range t.blind.forms(sum) {
			// The key may have passed to a later event once its window was over.
			if entry, err := decodeIdem(t.get(layout.Idem, hash)); err == nil && entry.id == ev.ID {
				t.forget(hash)
				t.del(layout.IdemQueue, idemQueueKey(entry.at, hash))
			}
		}
	}
}

// forget removes a remembered key, if there is one. Its place in the queue stays until its time has come.
func (t *txn) forget(hash []byte) {
	if rec := t.get(layout.Idem, hash); rec != nil {
		t.counters.idemBytes -= idemBytes(rec)
		t.del(layout.Idem, hash)
	}
}

func idemQueueKey(at time.Time, hash []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, layout.Micros(at)), hash...)
}

// idemBytes is what a remembered key costs, its place in the queue included.
func idemBytes(rec []byte) int64 { return int64(len(rec)) + 16 + 16 + 24 + 16 }
