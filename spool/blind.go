package spool

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// The hashes by which duplicates are known would let whoever has the file of an encrypted spool try out guesses: of a key,
// or of a whole request. So they are hashed once more with a secret of the spool's own, which is made when the first key
// comes, is kept under the newest one, and stays the same for ever: a change of keys must not make a spool forget what it
// has seen. What was remembered before the first key is recognised in its old form until its time has passed.

// blindKey is that secret; nil where there was never a key.
type blindKey []byte

// hash is a hash as it is stored.
func (k blindKey) hash(sum []byte) []byte {
	if k == nil {
		return sum
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(sum)
	return mac.Sum(nil)[:len(sum)]
}

// forms are all in which a hash may have been stored, the present one first.
func (k blindKey) forms(sum []byte) [][]byte {
	if k == nil {
		return [][]byte{sum}
	}
	return [][]byte{k.hash(sum), sum}
}

// same tells that a stored hash is of what sum is.
func (k blindKey) same(stored, sum []byte) bool {
	return bytes.Equal(stored, k.hash(sum)) || bytes.Equal(stored, sum)
}

func newBlindKey() blindKey {
	k := make(blindKey, sha256.Size)
	_, _ = rand.Read(k) // it never fails
	return k
}

// aboutBlind binds the sealed secret to its place.
var aboutBlind = []byte("postern spool hashes")

// encode seals the secret where the ring seals.
func (k blindKey) encode(ring *keyring.Ring) []byte {
	e := layout.NewEncoder(nil, layout.KindBlind)
	if !ring.Seals() {
		e.Raw(keyring.Stamp{}.Bytes())
		e.Raw(k)
		return e.Record()
	}
	stamp := ring.Stamp()
	e.Raw(stamp.Bytes())
	e.Append(func(dst []byte) []byte { return ring.Seal(dst, stamp, 0, k, aboutBlind) })
	return e.Record()
}

// splitBlind reads what needs no key: a stamp of zeros is that of a secret that is not sealed.
func splitBlind(rec []byte) (stamp keyring.Stamp, rest []byte, err error) {
	fields, err := layout.Fields(layout.KindBlind, rec)
	if err == nil && len(fields) < keyring.StampLen {
		err = layout.ErrCorrupt
	}
	if err != nil {
		return stamp, nil, fmt.Errorf("the secret of the hashes: %w", err)
	}
	return keyring.Stamp(fields[:keyring.StampLen]), fields[keyring.StampLen:], nil
}

func decodeBlind(rec []byte, ring *keyring.Ring) (blindKey, error) {
	stamp, rest, err := splitBlind(rec)
	if err != nil {
		return nil, err
	}
	if stamp.KeyID() == keyring.Plain {
		return bytes.Clone(rest), nil
	}
	key, err := ring.Open(nil, stamp, 0, rest, aboutBlind)
	if err != nil {
		return nil, fmt.Errorf("the secret of the hashes: %w", err)
	}
	return key, nil
}

// loadBlind reads the secret. One that is damaged is given up: what was remembered with it is not recognised any more.
func (s *Spool) loadBlind() error {
	return s.store.view(func(tx *bolt.Tx) error {
		rec := tx.Bucket(layout.Meta.Name()).Get(layout.KeyBlind)
		if rec == nil {
			return nil
		}
		k, err := decodeBlind(rec, s.ring())
		if err != nil {
			s.cfg.Logger.Error("what is remembered of idempotency keys and event IDs cannot be used any more: a request that is repeated may be accepted twice", "error", err)
			return nil
		}
		s.keys.blind.Store(&k)
		return nil
	})
}

// blind is the secret in force.
func (s *Spool) blind() blindKey {
	if k := s.keys.blind.Load(); k != nil {
		return *k
	}
	return nil
}

// coverHashes keeps the secret under the ring, and makes one where the ring is the first that seals.
func (t *txn) coverHashes(ring *keyring.Ring) {
	if t.blind == nil && ring.Seals() {
		t.newBlind = newBlindKey()
	}
	if k := t.newBlind; k != nil {
		t.put(layout.Meta, layout.KeyBlind, k.encode(ring))
	} else if t.blind != nil {
		t.put(layout.Meta, layout.KeyBlind, t.blind.encode(ring))
	}
}
