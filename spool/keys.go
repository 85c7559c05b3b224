package spool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// The spool notes which keys its records may need, in a record of its own (layout.KeyKeys). A key is noted before the first
// record is written under it, and struck off when the last one was rewritten. So a start without a key that is needed is
// refused before anything is touched, and whoever changes keys can be told when an old one may go. keyring.Plain stands
// for records that are not encrypted.

// keys is the spool's side of encryption.
type keys struct {
	ring  atomic.Pointer[keyring.Ring] // nil: nothing is encrypted
	blind atomic.Pointer[blindKey]
	work  sync.WaitGroup // the rewriting in the background

	mu        sync.Mutex // guards everything below
	inUse     []keyring.KeyID
	rewriting bool
	ended     bool // nothing is begun any more
}

// KeyName is the short name of a key, which tells nothing about it.
func KeyName(key []byte) string { return keyring.IDOf(key).String() }

// KeyStatus says how far the spool is with its keys. IDs are short names of keys; "none" stands for no encryption.
type KeyStatus struct {
	Newest string   // what is written is encrypted with it
	InUse  []string // what may be there still
	// Rewriting tells that records are being, or are yet to be, rewritten with the newest key.
	Rewriting bool
	// CopyOwed tells that free pages of the file may still hold what was there before, plain or under older keys, until a
	// copy takes the file's place, which happens as soon as there is room for one.
	CopyOwed bool
}

// Keys returns how far the spool is with its keys.
func (s *Spool) Keys() KeyStatus {
	k := &s.keys
	newest := s.ring().Newest()
	k.mu.Lock()
	defer k.mu.Unlock()
	// The change comes a moment before the rewriting: nobody may hear in between that older keys are not needed.
	rewriting := k.rewriting || !slices.Equal(k.inUse, []keyring.KeyID{newest})
	return KeyStatus{Newest: newest.String(), InUse: keyNames(k.inUse), Rewriting: rewriting, CopyOwed: s.compaction.forced.Load()}
}

func keyNames(ids []keyring.KeyID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	return names
}

func (s *Spool) ring() *keyring.Ring { return s.keys.ring.Load() }

func (k *keys) noted() []keyring.KeyID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.inUse
}

// with is what is noted and one more.
func (k *keys) with(more keyring.KeyID) []keyring.KeyID {
	ids := slices.Clone(k.noted())
	if !slices.Contains(ids, more) {
		ids = append(ids, more)
	}
	return ids
}

func (k *keys) note(ids []keyring.KeyID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inUse = ids
}

func encodeKeys(ids []keyring.KeyID) []byte {
	var raw []byte
	for _, id := range ids {
		raw = append(raw, id[:]...)
	}
	return sealText(layout.KindKeys, raw)
}

// decodeKeys returns what was noted. No note means plain records, unless there are none of any kind.
func decodeKeys(rec []byte) ([]keyring.KeyID, error) {
	if rec == nil {
		return []keyring.KeyID{keyring.Plain}, nil
	}
	fields, err := layout.Fields(layout.KindKeys, rec)
	if err != nil {
		return nil, fmt.Errorf("the note of keys: %w", err)
	}
	var ids []keyring.KeyID
	for raw := range slices.Chunk(fields, len(keyring.KeyID{})) {
		if len(raw) < len(keyring.KeyID{}) {
			return nil, fmt.Errorf("the note of keys: %w", layout.ErrCorrupt)
		}
		ids = append(ids, keyring.KeyID(raw))
	}
	return ids, nil
}

// loadKeys refuses a spool whose keys are not all there. A damaged note is made anew with the counts.
func (s *Spool) loadKeys() error {
	var rec []byte
	fresh, stale := false, false
	err := s.store.view(func(tx *bolt.Tx) error {
		meta := tx.Bucket(layout.Meta.Name())
		if meta == nil {
			fresh = true
			return nil
		}
		rec = slices.Clone(meta.Get(layout.KeyKeys))
		stale = meta.Get(layout.KeyStale) != nil
		return nil
	})
	if err != nil {
		return err
	}
	ids, err := decodeKeys(rec)
	switch {
	case fresh:
		ids = []keyring.KeyID{s.ring().Newest()}
	case err != nil:
		if err := s.recount(err); err != nil {
			return err
		}
		return s.loadKeys()
	}
	if err := missingKeys(s.dir.path, ids, s.ring()); err != nil {
		return err
	}
	s.keys.note(ids)
	s.compaction.forced.Store(stale)
	if fresh {
		return nil
	}
	return s.loadBlind()
}

func missingKeys(dir string, ids []keyring.KeyID, ring *keyring.Ring) error {
	var missing []string
	for _, id := range ids {
		if !ring.Has(id) {
			missing = append(missing, id.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: records in %s are encrypted with the key %s: add its file to spool.encryption_key_files, behind the newest",
		ErrKeyMissing, dir, strings.Join(missing, " and "))
}

// CheckKeys tells whether SetKeys would take keys: the error wraps ErrKeyMissing where records need one that is not among
// them.
func (s *Spool) CheckKeys(newestFirst [][]byte) error {
	_, err := s.newRing(newestFirst)
	return err
}

func (s *Spool) newRing(newestFirst [][]byte) (*keyring.Ring, error) {
	ring, err := keyring.New(newestFirst...)
	if err != nil {
		return nil, fmt.Errorf("spool.encryption_key_files: %w", err)
	}
	return ring, missingKeys(s.dir.path, s.keys.noted(), ring)
}

// SetKeys puts other keys in force, the newest first; what was written under others is rewritten in the background. The
// error wraps ErrKeyMissing where records still need a key that would be gone; nothing is changed then. Other errors are
// those of a commit that failed.
func (s *Spool) SetKeys(ctx context.Context, newestFirst [][]byte) error {
	ring, err := s.newRing(newestFirst)
	if err != nil || s.ring().Same(ring) {
		return err
	}
	return s.doContext(ctx, func(t *txn) error { return t.setKeys(ring) })
}

func (t *txn) setKeys(ring *keyring.Ring) error {
	if err := missingKeys(t.s.dir.path, t.s.keys.noted(), ring); err != nil {
		return err
	}
	t.noteKeys(t.s.keys.with(ring.Newest()))
	t.coverHashes(ring)
	// From the next transaction on: the rest of this one still writes under the old key, which stays noted.
	t.newRing = ring
	return nil
}

// noteKeys writes which keys are in use.
func (t *txn) noteKeys(ids []keyring.KeyID) {
	t.put(layout.Meta, layout.KeyKeys, encodeKeys(ids))
	t.keyIDs = ids
}

// publishKeys is publish's part. What follows a change of keys begins here, since who asked for it may have given up, or
// have heard that the commit failed that is visible after all.
func (s *Spool) publishKeys(t *txn) {
	if t.keyIDs != nil {
		s.keys.note(t.keyIDs)
	}
	if t.newBlind != nil {
		s.keys.blind.Store(&t.newBlind)
	}
	if t.copyWanted {
		s.compaction.want()
	}
	if t.newRing != nil {
		s.keys.ring.Store(t.newRing)
		s.cfg.Logger.Info("the spool's keys were changed", slog.String("newest", t.newRing.Newest().String()))
		s.rekey()
	}
}
