package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// What was written under an older key, or under none, is rewritten beside everything else: a few rows in a transaction,
// then a rest as long as that took. Nothing else may put a row under an older key meanwhile, since it might do so behind the
// pass (underNewest, appendOp.apply). At last the file is copied, since bbolt's free pages still have what was there before,
// and what was delivered before, too; that a copy is wanted is noted (layout.KeyStale) until one is in place.

const (
	// rekeyRows, rekeyScan, rekeyBytes and rekeyRead bound one transaction: rows rewritten, rows looked at, bytes written,
	// and bytes looked at. Nobody else is served meanwhile.
	rekeyRows  = 256
	rekeyScan  = 4096
	rekeyBytes = 512 << 10
	rekeyRead  = 8 * mib
	// rekeyPause is the least rest between two transactions, rekeyRetry the wait where one was refused.
	rekeyPause = 5 * time.Millisecond
	rekeyRetry = 5 * time.Second
)

// sealedBuckets are those whose rows can have sealed parts. Events come before dead letters, which refer to them.
var sealedBuckets = []layout.Bucket{layout.Events, layout.Progress, layout.Dead, layout.Outbox, layout.Refused}

// rekey starts the rewriting where there is something to rewrite.
func (s *Spool) rekey() {
	k := &s.keys
	newest := s.ring().Newest()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rewriting || k.ended || slices.Equal(k.inUse, []keyring.KeyID{newest}) {
		return
	}
	k.rewriting = true
	k.work.Go(s.rekeyUntilDone)
}

// rekeyUntilDone passes over the spool until a pass has ended without an error and without new keys.
func (s *Spool) rekeyUntilDone() {
	warned := false
	for {
		_, done, err := s.rekeyPass()
		switch {
		case err == nil && done && s.rekeyingEnds():
			return
		case err != nil && !warned && !errors.Is(err, ErrClosed):
			warned = true
			s.cfg.Logger.Warn("records cannot be rewritten with the newest key yet; it is tried again: older keys are still needed",
				slog.Any("error", err))
		}
		if err != nil && !s.rest(rekeyRetry) {
			s.keys.end()
			return
		}
	}
}

// rekeyingEnds ends the rewriting, unless the keys were changed since the pass ended: whoever did it has seen it going on.
func (s *Spool) rekeyingEnds() bool {
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rewriting = !slices.Equal(k.inUse, []keyring.KeyID{s.ring().Newest()})
	return !k.rewriting
}

// end lets nothing begin any more.
func (k *keys) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rewriting, k.ended = false, true
}

// rekeyPass rewrites what is not under the newest key and, at the end, strikes the other keys off. done is false where the
// keys were changed since the pass began.
func (s *Spool) rekeyPass() (rows int, done bool, err error) {
	ring := s.ring()
	for _, id := range sealedBuckets {
		for from, more := uint64(0), true; more; {
			start := time.Now()
			var step rekeyStep
			if err := s.do(func(t *txn) error {
				step = t.rekey(id, from)
				return step.err
			}); err != nil {
				return rows, false, err
			}
			rows += step.rows
			if from, more = step.next, step.next != 0; step.rows > 0 && !s.rest(max(time.Since(start), rekeyPause)) {
				return rows, false, ErrClosed
			}
		}
	}
	err = s.do(func(t *txn) error {
		done = t.strikeOff(ring)
		return nil
	})
	if err == nil && done {
		s.cfg.Logger.Info("every record of the spool is under the newest key now: older keys are not needed any more",
			slog.String("newest", ring.Newest().String()), slog.Int("rewritten", rows))
	}
	return rows, done, err
}

// strikeOff strikes the other keys off, unless they were changed since the pass began, be it in this very transaction.
func (t *txn) strikeOff(ring *keyring.Ring) bool {
	if t.ring != ring || t.newRing != nil {
		return false
	}
	t.coverHashes(ring)
	t.noteKeys([]keyring.KeyID{ring.Newest()})
	t.put(layout.Meta, layout.KeyStale, nothing)
	t.copyWanted = true
	return true
}

// rest waits; false means that the spool closes.
func (s *Spool) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closing:
		return false
	}
}

// rekeyStep is what one transaction of the rewriting did.
type rekeyStep struct {
	rows int
	next uint64 // where to go on; 0: nowhere
	err  error
}

var errNoRoomToRekey = errors.New("there is no room to rewrite records")

// rekey rewrites the next rows of a bucket that are not under the newest key.
func (t *txn) rekey(id layout.Bucket, from uint64) (step rekeyStep) {
	type row struct {
		seq uint64
		rec []byte
	}
	var rows []row
	bytes, scanned, read := 0, 0, 0
	c := t.bucket(id).Cursor()
	for k, v := c.Seek(layout.SeqKey(from)); k != nil; k, v = c.Next() {
		seq, ok := layout.Seq(k)
		if !ok {
			continue
		}
		if scanned++; scanned > rekeyScan || len(rows) == rekeyRows || bytes >= rekeyBytes || read >= rekeyRead {
			step.next = seq
			break
		}
		read += len(v)
		if t.isCurrent(id, seq, v) {
			continue
		}
		rows = append(rows, row{seq, slices.Clone(v)})
		bytes += len(v)
	}
	if len(rows) > 0 && t.room.fits(int64(bytes)+int64(len(rows))*pageSize/8) != nil {
		step.err = errNoRoomToRekey
		return step
	}
	for _, r := range rows {
		// A row that does not open is damaged: whoever needs it says so.
		if rec, err := t.rewritten(id, r.seq, r.rec); err == nil {
			t.replace(id, r.seq, r.rec, rec)
			step.rows++
		}
	}
	return step
}

// replace puts a row's new record in its place, and keeps the counts of bytes right.
func (t *txn) replace(id layout.Bucket, seq uint64, old, rec []byte) {
	key, more := layout.SeqKey(seq), int64(len(rec)-len(old))
	switch id {
	case layout.Events:
		if r, err := splitEvent(old); err == nil {
			t.endpoint(r.event.Endpoint).bytes += more
		}
	case layout.Outbox:
		t.counters.outboxBytes += more
	}
	t.room.taken += int64(len(rec))
	t.put(id, key, rec)
}

// isCurrent tells that a row need not be rewritten.
func (t *txn) isCurrent(id layout.Bucket, seq uint64, rec []byte) bool {
	newest := t.ring.Newest()
	switch id {
	case layout.Dead:
		dl, err := decodeDead(seq, rec)
		// Where targets are sealed, that of a named endpoint is with the event alone.
		return err != nil || dl.isUnder(newest) && (!dl.event.Named || (dl.event.Target == "") == t.ring.Seals())
	default:
		under, ok := keyOf(id, seq, rec)
		return !ok || under == newest
	}
}

// isUnder tells that an answer is there under another key, or none, or not at all.
func (p *progress) isUnder(id keyring.KeyID) bool {
	stamp, sealed := p.answerStamp()
	return sealed && stamp.KeyID() == id || !sealed && (p.Answer == nil || id == keyring.Plain)
}

// keyOf returns the key that a row is sealed with; ok is false where nothing in it is to be sealed, or it is damaged.
func keyOf(id layout.Bucket, seq uint64, rec []byte) (key keyring.KeyID, ok bool) {
	switch id {
	case layout.Events:
		r, err := splitEvent(rec)
		return r.stamp.KeyID(), err == nil
	case layout.Progress, layout.Dead:
		p, err := decodeProgress(seq, rec)
		if id == layout.Dead {
			dl, derr := decodeDead(seq, rec)
			if err = derr; err == nil {
				p = dl.progress
			}
		}
		stamp, sealed := p.answerStamp()
		return stamp.KeyID(), err == nil && (sealed || p.Answer != nil)
	case layout.Refused:
		row, err := splitRefused(seq, rec)
		if err != nil {
			return key, false
		}
		return keyOf(layout.Outbox, seq, row.rec)
	default:
		r, err := splitRow(seq, rec)
		return r.stamp.KeyID(), err == nil && (layout.Sealed(rec) || r.row.Target != "" || r.row.Body != nil)
	}
}

// rewritten returns a record as the ring in force writes it.
func (t *txn) rewritten(id layout.Bucket, seq uint64, rec []byte) ([]byte, error) {
	switch id {
	case layout.Events:
		ev, _, err := decodeEvent(seq, rec, eventPayload, t.ring)
		if err != nil {
			return nil, err
		}
		return encodeEvent(ev, t.ring), nil
	case layout.Progress:
		p, err := decodeProgress(seq, rec)
		if err == nil {
			err = p.reseal(seq, t.ring)
		}
		return encodeProgress(&p), err
	case layout.Dead:
		return t.rewrittenDead(seq, rec)
	case layout.Refused:
		row, err := decodeRefused(seq, rec, t.ring)
		if err != nil {
			return nil, err
		}
		return encodeRefused(row.At, row.Cause, encodeOutboxRow(&row.OutboxRow, t.ring)), nil
	case layout.Outbox:
		row, err := decodeOutboxRow(seq, rec, t.ring)
		if err != nil {
			return nil, err
		}
		return encodeOutboxRow(&row, t.ring), nil
	}
	return nil, fmt.Errorf("rows of %s are not sealed", id)
}

func (t *txn) rewrittenDead(seq uint64, rec []byte) ([]byte, error) {
	dl, err := decodeDead(seq, rec)
	if err == nil {
		err = dl.reseal(seq, t.ring)
	}
	if err != nil {
		return nil, err
	}
	if dl.event.Named {
		ev, _, err := decodeEvent(seq, t.get(layout.Events, layout.SeqKey(seq)), eventTarget, t.ring)
		if err != nil {
			return nil, err
		}
		if dl.event.Target = listedTarget(ev); t.ring.Seals() {
			dl.event.Target = ""
		}
	}
	return encodeDead(dl), nil
}

// reseal puts an answer under the newest key.
func (p *progress) reseal(seq uint64, ring *keyring.Ring) error {
	if err := p.openAnswer(seq, ring); err != nil {
		return err
	}
	p.setAnswer(seq, p.Answer, ring)
	return nil
}

// underNewest puts the answer of a record that is to be written under the newest key: behind a pass nothing may come under
// an old one. An answer that does not open is damaged, and is left out.
func (t *txn) underNewest(seq uint64, p *progress) {
	if p.isUnder(t.ring.Newest()) {
		return
	}
	if err := p.reseal(seq, t.ring); err != nil {
		p.Answer, p.sealed = nil, nil
	}
}

// RekeyReport says what Rekey did.
type RekeyReport struct {
	Key           string // the name of the key that everything is under now; "none" where nothing is encrypted any more
	Rewritten     int    // records
	Before, After int64  // the file's size in bytes
}

// Rekey rewrites every record of a spool with the first of cfg.Keys, or without encryption where plain is set, and copies
// the file, so that nothing is left in it of what was there before. The other keys are needed to read what is there. No
// process may have the directory open.
func Rekey(cfg Config, plain bool) (report RekeyReport, err error) {
	if err := cfg.Validate(); err != nil {
		return report, err
	}
	ring, err := keyring.New(cfg.Keys...)
	if err != nil {
		return report, err
	}
	if plain {
		ring = ring.OpenOnly()
	}
	if _, unlock, err := lockExisting(cfg.Dir); err != nil {
		return report, err
	} else {
		unlock()
	}
	s, err := openWith(cfg, ring)
	if err != nil {
		return report, err
	}
	report.Key = ring.Newest().String()
	state := "under the key " + report.Key
	if plain {
		state = "decrypted"
	}
	report.Rewritten, _, err = s.rekeyPass()
	if err = errors.Join(err, s.Close(context.Background())); err != nil {
		return report, fmt.Errorf("rewrite the spool's records: %d are %s, others are not yet, and older keys are still needed; mend the cause and run it again: %w",
			report.Rewritten, state, err)
	}
	if report.Before, report.After, err = Compact(cfg.Dir, nil); err != nil {
		return report, fmt.Errorf("every record is %s already, but the file could not be copied, and its free pages may still hold what was there before; "+
			"free room on the disk and run postern spool compact, or start Postern, which copies by itself: %w", state, err)
	}
	return report, nil
}
