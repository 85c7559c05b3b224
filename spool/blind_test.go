package spool

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// twin sends an event again and tells whether it is recognised; explicit events are known by their ID as well.
func (r *rig) twin(id string) bool {
	r.t.Helper()
	ev := secretEvent(id, false)
	ev.ExplicitID = true
	return r.append(ev).Duplicate
}

// TestTwinsAreKnownThroughChangesOfKeys: an event that was accepted before the first key, between two, or after them is
// recognised whatever became of the keys, by restart and by reload, waiting and delivered.
func TestTwinsAreKnownThroughChangesOfKeys(t *testing.T) {
	r := newRig(t, withKeys())
	known := []string{"plain", "first", "second", "again"}
	stage := 0
	check := func(when string) {
		t.Helper()
		for i, id := range known {
			if got := r.twin(id); got != (i < stage) {
				t.Errorf("%s: %s is recognised: %v", when, id, got)
			}
			if i == stage { // it is new now, and known from here on
				stage++
				break
			}
		}
		for _, l := range r.lease(endpointA, 1) {
			r.finish(l, delivered(l))
		}
	}
	check("without a key")
	r.cfg.Keys = [][]byte{key(1)}
	r.must(r.SetKeys(context.Background(), r.cfg.Keys))
	check("after the first key")
	r.rekeyed()
	r.cfg.Keys = [][]byte{key(2), key(1)}
	r.reopen()
	check("after a restart with the second key")
	r.rekeyed()
	r.cfg.Keys = r.cfg.Keys[:1]
	r.reopen()
	r.close()
	if _, err := Rekey(r.cfg, true); err != nil {
		t.Fatal(err)
	}
	r.cfg.Keys = nil
	r.open()
	check("back without keys")
	r.reopen()
	if stage = 4; r.twin("plain") != true || r.twin("again") != true {
		t.Error("forgotten at last")
	}
	// What is dropped by a person may be sent again, whichever form its keys have.
	for _, id := range known {
		if err := r.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDroppedTwinsAreAccepted: the keys of a dropped event are forgotten in whichever form they were remembered.
func TestDroppedTwinsAreAccepted(t *testing.T) {
	r := newRig(t, withKeys())
	r.twin("before")
	r.cfg.Keys = [][]byte{key(1)}
	r.must(r.SetKeys(context.Background(), r.cfg.Keys))
	r.twin("after")
	for _, id := range []string{"before", "after"} {
		if !r.twin(id) {
			t.Errorf("%s is not recognised", id)
		}
		r.must(r.Delete(t.Context(), id))
		if r.twin(id) {
			t.Errorf("%s was dropped, and is not accepted again", id)
		}
	}
}

// TestGuessesCannotBeTried: neither a key's hash nor a request's can be found in the file of an encrypted spool.
func TestGuessesCannotBeTried(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		r := newRig(t, func(cfg *Config) {
			if encrypted {
				cfg.Keys = [][]byte{key(1)}
			}
		})
		r.twin("guessed")
		l := r.lease(endpointA, 1)[0]
		r.finish(l, delivered(l))
		guess := secretEvent("guessed", false)
		guess.ExplicitID = true
		file := mustRead(t, r.store.path)
		for _, sum := range append(keyHashes(guess), fingerprint(guess)) {
			if bytes.Contains(file, sum) == encrypted {
				t.Errorf("encrypted: %v, and the hash of a guess is there: %v", encrypted, !encrypted)
			}
		}
	}
}

// TestSecretOfTheHashesIsDamaged: what was remembered is lost, that is said, and everything else goes on.
func TestSecretOfTheHashesIsDamaged(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, withKeys(key(1)), func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.append(secretEvent("first", false)) // without an ID of the application's
	r.close()
	r.rewrite(func(tx *bolt.Tx) error { return tx.Bucket(layout.Meta.Name()).Put(layout.KeyBlind, []byte("nonsense")) })
	r.open()
	if !strings.Contains(log.String(), "may be accepted twice") {
		t.Errorf("it is not said:\n%s", log.String())
	}
	ev := secretEvent("second", false)
	ev.Headers, ev.IdempotencyKey = secretEvent("first", false).Headers, "SECRET-key-first"
	if res := r.append(ev); res.Duplicate {
		t.Error("what cannot be known is recognised")
	}
	if again := r.append(ev); !again.Duplicate {
		t.Error("what was accepted since is not recognised")
	}
}
