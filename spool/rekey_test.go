package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// noPass keeps the rewriting from beginning, as if a pass were under way that this row is behind.
func (r *rig) noPass() (again func()) {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	r.keys.rewriting = true
	return func() {
		r.keys.mu.Lock()
		r.keys.rewriting = false
		r.keys.mu.Unlock()
		r.rekey()
	}
}

func (r *rig) mustSetKeys(keys ...[]byte) {
	r.t.Helper()
	r.cfg.Keys = keys
	r.must(r.SetKeys(context.Background(), keys))
}

// TestKeysChangeAsAPassEnds: neither the transaction that ends a pass nor the moment after it may overlook a change of keys.
func TestKeysChangeAsAPassEnds(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	again := r.noPass()
	r.cfg.Keys = [][]byte{key(2), key(1)}
	ring, err := keyring.New(r.cfg.Keys...)
	r.must(err)
	r.must(r.do(func(tx *txn) error {
		err := tx.setKeys(ring)
		if tx.strikeOff(tx.ring) {
			t.Error("the pass ends with the keys of before")
		}
		return err
	}))
	if st := r.Keys(); len(st.InUse) != 2 || st.Newest != KeyName(key(2)) {
		t.Errorf("keys: %+v", st)
	}
	if r.rekeyingEnds() {
		t.Error("the rewriting ends although the keys were changed")
	}
	again()
	r.rekeyed()
	if st := r.Keys(); !slices.Equal(st.InUse, []string{KeyName(key(2))}) {
		t.Errorf("keys: %+v", st)
	}
	r.played()
}

// TestKeysChangeForNobody: who asked for other keys has given up, but the change is made; the rewriting follows all the same.
func TestKeysChangeForNobody(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	hold := r.holdCommitter()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.cfg.Keys = [][]byte{key(2), key(1)}
	err := r.SetKeys(ctx, r.cfg.Keys)
	close(hold)
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Fatal(err)
	}
	r.must(r.do(func(*txn) error { return nil }))
	r.rekeyed()
	if st := r.Keys(); !slices.Equal(st.InUse, []string{KeyName(key(2))}) {
		t.Errorf("keys: %+v", st)
	}
	r.played()
}

// TestThereAndBack: the first key becomes the newest again while what is under the second one is not rewritten yet.
func TestThereAndBack(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	again := r.noPass()
	r.mustSetKeys(key(2), key(1))
	r.append(secretEvent("between", false))
	if err := r.SetKeys(context.Background(), [][]byte{key(1)}); !errors.Is(err, ErrKeyMissing) {
		t.Fatalf("the key is taken away: %v", err)
	}
	r.mustSetKeys(key(1), key(2))
	again()
	r.rekeyed()
	r.mustSetKeys(key(1))
	r.reopen()
	if v, err := r.Get("between", true); err != nil || string(v.Body) != "SECRET-body-between" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestNothingComesUnderAnOldKey: what moves a kept answer from one bucket to another may do so behind a pass.
func TestNothingComesUnderAnOldKey(t *testing.T) {
	for name, keys := range map[string][][]byte{"from plain": {}, "from a key": {key(1)}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, withKeys(keys...))
			r.play()
			withTTL := secretEvent("short", false)
			withTTL.TTL = time.Hour
			r.append(withTTL)
			for _, l := range r.lease(endpointA, 10) {
				if l.Event.ID == "short" {
					r.finish(l, failedWith(l, VerdictRetry))
					continue
				}
				r.Release(l)
			}
			defer r.noPass()()
			r.mustSetKeys(append([][]byte{key(9)}, keys...)...)
			newest := keyring.IDOf(key(9))
			for _, id := range []string{"htdead", "padead", "htfailed"} {
				r.must(r.Retry(t.Context(), id))
			}
			for _, l := range r.lease(endpointA, 10) { // without an attempt: nothing says that there is a new answer
				r.finish(l, Result{Verdict: VerdictRetry, NextAttempt: time.Now()})
			}
			r.must(r.do(func(tx *txn) error { return tx.expire(seqOf(tx, "short"), withTTL.AcceptedAt.Add(time.Hour)) }))
			r.must(r.do(func(tx *txn) error {
				for id, in := range map[string]layout.Bucket{"htdead": layout.Progress, "padead": layout.Progress, "htfailed": layout.Progress, "short": layout.Dead} {
					seq := seqOf(tx, id)
					under, ok := keyOf(in, seq, tx.get(in, layout.SeqKey(seq)))
					if !ok || under != newest {
						t.Errorf("the answer kept for %s is under %v, %v", id, under, ok)
					}
				}
				return nil
			}))
		})
	}
}

func seqOf(t *txn, id string) uint64 {
	seq, _ := layout.Seq(t.get(layout.IDs, layout.PackID(id)))
	return seq
}

// TestDeliveredBeforeTheFirstKey: what was delivered is gone from the records and is still on free pages.
func TestDeliveredBeforeTheFirstKey(t *testing.T) {
	r := newRig(t, withKeys(), func(cfg *Config) { cfg.Outbox = false })
	r.append(secretEvent("a", false))
	r.drain(endpointA)
	if len(leaks(t, r.cfg.Dir)) == 0 {
		t.Fatal("the test shows nothing")
	}
	r.mustSetKeys(key(1))
	r.rekeyed()
	if found := leaks(t, r.cfg.Dir); len(found) > 0 {
		t.Errorf("readable: %q", found)
	}
}

// TestStoppedBeforeTheCopy: a start makes the copy that the one before it owed, and no other one.
func TestStoppedBeforeTheCopy(t *testing.T) {
	r := newRig(t, withKeys())
	r.play()
	noCopy := func() {
		r.must(r.do(func(*txn) error { r.compaction.notBefore = time.Now().Add(time.Hour); return nil }))
	}
	noCopy()
	r.mustSetKeys(key(1))
	for r.Keys().Rewriting {
		r.must(r.do(func(*txn) error { return nil }))
	}
	r.reopen()
	if !r.compaction.forced.Load() {
		t.Fatal("the copy is forgotten")
	}
	r.rekeyed()
	if found := leaks(t, r.cfg.Dir); len(found) > 0 {
		t.Errorf("readable: %q", found)
	}
	r.reopen()
	if r.compaction.forced.Load() {
		t.Error("a copy is wanted again")
	}
	noCopy()
	r.mustSetKeys(key(2), key(1))
	for r.Keys().Rewriting {
		r.must(r.do(func(*txn) error { return nil }))
	}
	r.close()
	if _, _, err := Compact(r.cfg.Dir, nil); err != nil {
		t.Fatal(err)
	}
	r.open()
	if r.compaction.forced.Load() {
		t.Error("a copy is wanted although a person made one")
	}
}

// TestPassEndsDuringACopy: a copy that began before the pass ended has read what is to be gone.
func TestPassEndsDuringACopy(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, withKeys(), func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.play()
	r.must(r.do(func(*txn) error {
		r.compaction.forced.Store(true)
		r.considerCompaction(time.Now())
		if r.compaction.current == nil {
			return errors.New("no copy was begun")
		}
		r.compaction.want()
		return nil
	}))
	r.rekeyed()
	r.close()
	if n := strings.Count(log.String(), "was compacted"); n != 2 {
		t.Errorf("%d copies were made", n)
	}
}

// TestSoundRecordIsNotSetAside: a reader whose view is older than the last key it has cannot read what is there now as sound.
func TestSoundRecordIsNotSetAside(t *testing.T) {
	told := make(chan []Committed, 100)
	r := newRig(t, withKeys(key(1)), func(cfg *Config) { cfg.Committed = func(c []Committed) { told <- c } })
	r.append(secretEvent("a", false))
	fresh := (<-told)[0].Lease
	r.Release(fresh)
	due := fresh.Progress.NextAttempt
	r.must(r.do(func(tx *txn) error {
		if !r.leases.reserve(fresh.Event.Seq) {
			return errors.New("it is leased")
		}
		return nil
	}))
	r.setAside(pick{seq: fresh.Event.Seq, due: due, lease: &Lease{}}, fmt.Errorf("a reader's %w", keyring.ErrUnknownKey))
	if c := <-told; len(c) != 1 || c[0].Endpoint != endpointA || c[0].Lease != nil {
		t.Errorf("told: %+v", c)
	}
	if st := r.Stats(); st.SetAside != 0 {
		t.Errorf("%d set aside", st.SetAside)
	}
	if l := r.lease(endpointA, 10); len(l) != 1 {
		t.Errorf("leased: %+v", l)
	} else {
		r.Release(l[0])
	}
}

// TestPassReadsLittleAtOnce: a pass over big events that are under the newest key already holds nobody up for long.
func TestPassReadsLittleAtOnce(t *testing.T) {
	r := newRig(t, withKeys(key(1)), func(cfg *Config) { cfg.MaxEndpointShare = 1 })
	r.store.cur.db.NoSync = true
	const n, size = 24, mib - 1024
	for i := range n {
		r.append(event(fmt.Sprint(i), endpointA, strings.Repeat("x", size)))
	}
	steps := 0
	for from, more := uint64(0), true; more; steps++ {
		r.must(r.do(func(tx *txn) error {
			step := tx.rekey(layout.Events, from)
			from, more = step.next, step.next != 0
			return step.err
		}))
	}
	if want := n * size / rekeyRead; steps < want {
		t.Errorf("%d steps, at least %d were wanted", steps, want)
	}
}

// TestKeysChangeInDoubt: whether the change is on disk nobody knows, but it is visible, and the note of keys with it.
func TestKeysChangeInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withKeys(key(1)))
		r.play()
		f := breakDisk(r.Spool)
		f.visible.Store(true)
		f.noSync.Store(true)
		r.cfg.Keys = [][]byte{key(2), key(1)}
		r.mustBe(r.SetKeys(t.Context(), r.cfg.Keys), ErrUnknownOutcome)
		if st := r.Keys(); len(st.InUse) != 2 || !st.Rewriting {
			t.Errorf("while in doubt: %+v", st)
		}
		f.visible.Store(false)
		f.noSync.Store(false)
		time.Sleep(time.Minute)
		if st := r.Keys(); !slices.Equal(st.InUse, []string{KeyName(key(2))}) || st.Rewriting {
			t.Errorf("afterwards: %+v", st)
		}
		r.played()
	})
}

// TestPassOnAFailingDisk: what a pass could not write it writes later, and no key is struck off before.
func TestPassOnAFailingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withKeys(key(1)))
		r.play()
		again := r.noPass()
		r.mustSetKeys(key(2), key(1))
		f := breakDisk(r.Spool)
		f.fail.Store(true)
		again()
		time.Sleep(time.Minute)
		if st := r.Keys(); len(st.InUse) != 2 || !st.Rewriting {
			t.Errorf("while the disk fails: %+v", st)
		}
		f.fail.Store(false)
		time.Sleep(time.Minute)
		if st := r.Keys(); !slices.Equal(st.InUse, []string{KeyName(key(2))}) || st.Rewriting || r.compaction.forced.Load() {
			t.Errorf("afterwards: %+v", st)
		}
		r.played()
	})
}

// TestNoRoomForTheCopy: whoever is refused the copy learns that the records are done, and what is left to do.
func TestNoRoomForTheCopy(t *testing.T) {
	r := newRig(t, withKeys(key(1)))
	r.play()
	r.close()
	r.cfg.Keys = [][]byte{key(2), key(1)}
	inTheWay := filepath.Join(r.cfg.Dir, compactName, "x")
	now := r.cfg.Now
	r.cfg.Now = func() time.Time { // once it is open
		_ = os.MkdirAll(inTheWay, 0o700)
		return time.Now()
	}
	_, err := Rekey(r.cfg, false)
	r.cfg.Now = now
	if err == nil || !strings.Contains(err.Error(), "every record is under the key "+KeyName(key(2))+" already") || !strings.Contains(err.Error(), "run postern spool compact, or start Postern") {
		t.Fatal(err)
	}
	r.must(os.RemoveAll(filepath.Dir(inTheWay)))
	r.cfg.Keys = [][]byte{key(2)}
	r.open()
}
