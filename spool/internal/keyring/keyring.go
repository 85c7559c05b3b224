// Package keyring seals parts of records with AES-256-GCM and opens them again.
//
// It promises that no nonce is used twice under one key, that what was altered, cut or moved to another record does not
// open, that every sealed part tells which key it needs without that key being there, and that several keys can open
// while the newest seals. It leaves out where keys come from, and what is sealed; those are package spool's business.
//
// A key that a person made is never used as it is: each Ring derives a data key of its own from it (HKDF-SHA-256, RFC
// 5869, with a random salt, the epoch) and counts its nonces. Random nonces under one key would have to stop after 2^32
// records (NIST SP 800-38D, section 8.3), which a busy spool reaches in days.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// Overhead is how many bytes longer a sealed part is than what was sealed; the stamp comes once per record beside it.
const Overhead = 16

// Errors of Open and New.
var (
	// ErrUnknownKey means that the part was sealed with a key that the ring does not have.
	ErrUnknownKey = errors.New("it is encrypted with a key that is not there")
	// ErrForged means that the part was altered since it was sealed, or belongs to another record.
	ErrForged = errors.New("the encrypted part does not authenticate")
)

// KeyID names a key without telling anything about it. The zero ID stands for no encryption.
type KeyID [4]byte

// Plain is the ID of no key.
var Plain KeyID

// String returns the ID as people see it.
func (id KeyID) String() string {
	if id == Plain {
		return "none"
	}
	return hex.EncodeToString(id[:])
}

// IDOf returns the ID of a key. It is never Plain.
func IDOf(key []byte) (id KeyID) {
	for n := byte(0); id == Plain; n++ {
		sum := sha256.Sum256(append([]byte("postern spool key id\x00"), append(slices.Clone(key), n)...))
		id = KeyID(sum[:4])
	}
	return id
}

// epoch is the salt of one data key.
type epoch [16]byte

// StampLen is the length of a Stamp in a record.
const StampLen = 4 + 16 + 8

// Stamp says how the parts of one record were sealed: which key, which epoch, which nonce. It is not secret.
type Stamp [StampLen]byte

// Bytes is the stamp as it stands in a record.
func (s Stamp) Bytes() []byte { return s[:] }

// KeyID returns the key that the record needs.
func (s Stamp) KeyID() KeyID { return KeyID(s[:4]) }

func (s Stamp) epoch() epoch { return epoch(s[4:20]) }

// nonce is that of one part: no two parts of a record share one.
func (s Stamp) nonce(part uint32) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 12), part), s[20:]...)
}

// Ring holds keys. All its methods may be called from many goroutines. The nil Ring has no keys and seals nothing.
type Ring struct {
	newest KeyID
	keys   map[KeyID][]byte
	prefix [20]byte // of every stamp: key and epoch
	seal   cipher.AEAD
	next   atomic.Uint64

	mu     sync.Mutex // guards opened
	opened map[dataKey]cipher.AEAD
}

type dataKey struct {
	id KeyID
	epoch
}

// maxOpened bounds the data keys that are kept for reading: one per start whose records are still there.
const maxOpened = 4096

// New returns a ring of keys, the newest first: that one seals, all of them open. No keys give a nil Ring. The error says
// which key, counted from 1, has the wrong length or is there twice.
func New(keys ...[]byte) (*Ring, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	r := &Ring{keys: make(map[KeyID][]byte), opened: make(map[dataKey]cipher.AEAD)}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("key %d has %d bytes: %d are needed", i+1, len(key), KeySize)
		}
		id := IDOf(key)
		if r.keys[id] != nil {
			return nil, fmt.Errorf("key %d is there twice", i+1)
		}
		r.keys[id] = slices.Clone(key)
	}
	r.newest = IDOf(keys[0])
	var e epoch
	_, _ = rand.Read(e[:]) // it never fails
	r.seal = derive(keys[0], e)
	copy(r.prefix[copy(r.prefix[:], r.newest[:]):], e[:])
	return r, nil
}

// OpenOnly returns a ring that opens what the given one opens, and seals nothing.
func (r *Ring) OpenOnly() *Ring {
	if r == nil {
		return nil
	}
	return &Ring{keys: r.keys, opened: make(map[dataKey]cipher.AEAD)}
}

// derive makes the cipher of one epoch. The key has the right length, so that nothing here can fail.
func derive(key []byte, e epoch) cipher.AEAD {
	data, err := hkdf.Key(sha256.New, key, e[:], "postern spool record", KeySize)
	if err != nil {
		panic(err)
	}
	block, err := aes.NewCipher(data)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// Same tells whether both rings have the same keys and the same one seals.
func (r *Ring) Same(o *Ring) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Newest() == o.Newest() && r.Seals() == o.Seals() && maps.EqualFunc(r.keys, o.keys, slices.Equal)
}

// Seals tells whether the ring seals; if not, records stay plain.
func (r *Ring) Seals() bool { return r != nil && r.seal != nil }

// Newest is the key that seals, or Plain.
func (r *Ring) Newest() KeyID {
	if r == nil {
		return Plain
	}
	return r.newest
}

// Has tells whether what was sealed with a key can be opened. Plain needs none.
func (r *Ring) Has(id KeyID) bool { return id == Plain || r != nil && r.keys[id] != nil }

// Stamp returns the stamp of a new record. The ring must seal.
func (r *Ring) Stamp() (s Stamp) {
	copy(s[:], r.prefix[:])
	binary.BigEndian.PutUint64(s[20:], r.next.Add(1))
	return s
}

// Seal appends a sealed part to dst. The stamp is of this ring's Stamp method; part numbers the parts of its record, each
// is used once. about is not hidden, but what opens is bound to it.
func (r *Ring) Seal(dst []byte, s Stamp, part uint32, plain, about []byte) []byte {
	return r.seal.Seal(dst, s.nonce(part), plain, about)
}

// Open appends what was sealed to dst. The error wraps ErrUnknownKey or ErrForged.
func (r *Ring) Open(dst []byte, s Stamp, part uint32, sealed, about []byte) ([]byte, error) {
	if r == nil || r.keys[s.KeyID()] == nil {
		return nil, fmt.Errorf("%w: the key %s", ErrUnknownKey, s.KeyID())
	}
	plain, err := r.cipherOf(s).Open(dst, s.nonce(part), sealed, about)
	if err != nil {
		return nil, ErrForged
	}
	return plain, nil
}

// cipherOf derives the data key of a stamp, once.
func (r *Ring) cipherOf(s Stamp) cipher.AEAD {
	if r.seal != nil && [20]byte(s[:20]) == r.prefix {
		return r.seal
	}
	k := dataKey{s.KeyID(), s.epoch()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if aead := r.opened[k]; aead != nil {
		return aead
	}
	aead := derive(r.keys[k.id], k.epoch)
	if len(r.opened) >= maxOpened {
		clear(r.opened)
	}
	r.opened[k] = aead
	return aead
}
