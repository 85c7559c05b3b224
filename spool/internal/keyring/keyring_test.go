package keyring

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
)

func newKey(t testing.TB) []byte {
	t.Helper()
	key := make([]byte, KeySize)
	_, _ = rand.Read(key)
	return key
}

func mustRing(t testing.TB, keys ...[]byte) *Ring {
	t.Helper()
	r, err := New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealAndOpen(t *testing.T) {
	old, key := newKey(t), newKey(t)
	before := mustRing(t, old)
	stamp := before.Stamp()
	sealed := before.Seal(nil, stamp, 1, []byte("payout 12.50"), []byte("event 7"))
	if bytes.Contains(sealed, []byte("payout")) || len(sealed) != len("payout 12.50")+Overhead {
		t.Fatalf("sealed: %q", sealed)
	}
	for name, ring := range map[string]*Ring{
		"the same":             before,
		"after a restart":      mustRing(t, old),
		"after a rotation":     mustRing(t, key, old),
		"for reading only":     mustRing(t, key, old).OpenOnly(),
		"after a way back":     mustRing(t, old, key),
		"a ring of a ring too": mustRing(t, old).OpenOnly().OpenOnly(),
	} {
		if got, err := ring.Open(nil, stamp, 1, sealed, []byte("event 7")); err != nil || string(got) != "payout 12.50" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestWhatDoesNotOpen(t *testing.T) {
	key := newKey(t)
	ring := mustRing(t, key)
	stamp := ring.Stamp()
	sealed := ring.Seal(nil, stamp, 0, []byte("secret"), []byte("about"))
	other := ring.Stamp()
	for name, tt := range map[string]struct {
		ring   *Ring
		stamp  Stamp
		part   uint32
		sealed []byte
		about  string
		want   error
	}{
		"another key":    {mustRing(t, newKey(t)), stamp, 0, sealed, "about", ErrUnknownKey},
		"no key":         {nil, stamp, 0, sealed, "about", ErrUnknownKey},
		"another part":   {ring, stamp, 1, sealed, "about", ErrForged},
		"another record": {ring, other, 0, sealed, "about", ErrForged},
		"about another":  {ring, stamp, 0, sealed, "abouT", ErrForged},
		"cut":            {ring, stamp, 0, sealed[:len(sealed)-1], "about", ErrForged},
		"nothing":        {ring, stamp, 0, nil, "about", ErrForged},
	} {
		if got, err := tt.ring.Open(nil, tt.stamp, tt.part, tt.sealed, []byte(tt.about)); !errors.Is(err, tt.want) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for i := range len(sealed) * 8 {
		flipped := bytes.Clone(sealed)
		flipped[i/8] ^= 1 << (i % 8)
		if _, err := ring.Open(nil, stamp, 0, flipped, []byte("about")); !errors.Is(err, ErrForged) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
}

// TestNoncesDiffer holds for one ring, used from many sides, and for two rings of one key.
func TestNoncesDiffer(t *testing.T) {
	key := newKey(t)
	rings := []*Ring{mustRing(t, key), mustRing(t, key)}
	var mu sync.Mutex
	seen := make(map[Stamp]bool)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				s := rings[i%2].Stamp()
				mu.Lock()
				if seen[s] {
					t.Errorf("the stamp %x came twice", s)
				}
				seen[s] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	a, b := rings[0].Stamp(), rings[1].Stamp()
	if a.epoch() == b.epoch() || a.KeyID() != b.KeyID() {
		t.Errorf("two rings of one key: epochs %x and %x, keys %v and %v", a.epoch(), b.epoch(), a.KeyID(), b.KeyID())
	}
	if bytes.Equal(a.nonce(0), a.nonce(1)) {
		t.Error("two parts have one nonce")
	}
}

func TestNewRefuses(t *testing.T) {
	key := newKey(t)
	if _, err := New(key, key); err == nil || !strings.Contains(err.Error(), "key 2 is there twice") {
		t.Errorf("a key twice: %v", err)
	}
	if _, err := New(key[:31]); err == nil || !strings.Contains(err.Error(), "31 bytes") {
		t.Errorf("a short key: %v", err)
	}
	var none *Ring
	if r, err := New(); r != nil || err != nil || none.Seals() || none.Newest() != Plain || !none.Has(Plain) || none.Has(IDOf(key)) {
		t.Errorf("no keys: %v, %v", r, err)
	}
	if a, b := mustRing(t, key), mustRing(t, key); !a.Same(b) || a.Same(b.OpenOnly()) || a.Same(none) || none.Same(a) || !none.Same(nil) ||
		a.Same(mustRing(t, key, newKey(t))) {
		t.Error("Same is wrong")
	}
	if none.OpenOnly() != nil || mustRing(t, key).OpenOnly().Seals() {
		t.Error("a ring for reading seals")
	}
}

func TestManyEpochsAreOpened(t *testing.T) {
	key := newKey(t)
	reader := mustRing(t, key).OpenOnly()
	for range maxOpened + 10 {
		w := mustRing(t, key)
		s := w.Stamp()
		if got, err := reader.Open(nil, s, 0, w.Seal(nil, s, 0, []byte("x"), nil), nil); err != nil || string(got) != "x" {
			t.Fatal(string(got), err)
		}
	}
	if len(reader.opened) > maxOpened {
		t.Errorf("%d data keys are kept", len(reader.opened))
	}
}

func FuzzOpen(f *testing.F) {
	key := bytes.Repeat([]byte{1, 2}, KeySize/2)
	ring, _ := New(key)
	s := ring.Stamp()
	f.Add(s[:], ring.Seal(nil, s, 0, []byte("secret"), nil))
	f.Fuzz(func(t *testing.T, stamp, sealed []byte) {
		if len(stamp) != StampLen {
			return
		}
		// The seed may be another process's, with a stamp of its own under the same key.
		if got, err := ring.Open(nil, Stamp(stamp), 0, sealed, nil); err == nil && string(got) != "secret" {
			t.Fatalf("%x opens as %q", sealed, got)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	ring, plain := mustRing(b, newKey(b)), make([]byte, 600)
	var dst []byte
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		dst = ring.Seal(dst[:0], ring.Stamp(), 0, plain, nil)
	}
}
