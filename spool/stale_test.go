package spool

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"postern/spool/internal/layout"
)

// smallest makes a spool of the smallest size.
func smallest(cfg *Config) {
	cfg.MaxBytes, cfg.MaxEventBytes, cfg.MaxEndpointShare, cfg.Outbox = 4*mib, mib, 1, false
}

// pages tells how many bytes of the file were ever used.
func (r *rig) pages() (highWater int64) {
	r.t.Helper()
	r.must(r.do(func(*txn) error { highWater = r.store.space.highWater; return nil }))
	return highWater
}

// TestSmallestSpoolIsCopied: of a spool of the smallest size that was once full, results and reserve and all, the copy
// that a change of keys owes is made as soon as it has drained.
func TestSmallestSpoolIsCopied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ size, answer int }{{0, 0}, {1000, 1024}, {20_000, 1024}} {
		t.Run(fmt.Sprintf("bodies of %d, answers of %d", tt.size, tt.answer), func(t *testing.T) {
			r := newRig(t, withKeys(), smallest)
			r.store.cur.db.NoSync = true
			r.append(secretEvent("a", false))
			r.drain(endpointA)
			failFull(r, tt.size, tt.answer)
			full := r.pages()
			if full+r.room.reserve < 3*mib {
				t.Fatalf("it was not full: %d bytes", full)
			}
			r.mustSetKeys(key(1))
			r.rekeyed()
			if found := leaks(t, r.cfg.Dir); len(found) > 0 {
				t.Errorf("readable: %q", found)
			}
			if now := r.pages(); now > mib {
				t.Errorf("%d bytes in use, %d when it was full", now, full)
			}
			r.append(secretEvent("b", false))
			r.drain(endpointA)
		})
	}
}

// TestCopyIsOwed: while there is no room for it one can see that it is owed, the log says so once, a restart does not
// forget it, and it is made when there is room.
func TestCopyIsOwed(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, withKeys(), smallest, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.append(secretEvent("a", false))
	r.drain(endpointA)
	n := r.fill(endpointA, 1000)
	for _, l := range r.lease(endpointA, n/3) { // room for what is rewritten, not for a copy
		r.finish(l, delivered(l))
	}
	r.mustSetKeys(key(1))
	for deadline := time.Now().Add(2 * time.Minute); r.Keys().Rewriting; {
		if time.Now().After(deadline) {
			t.Fatal("it is not rewritten")
		}
		r.must(r.do(func(*txn) error { return nil }))
	}
	owed := func(when string) {
		t.Helper()
		for range 3 {
			r.must(r.do(func(*txn) error { r.considerCompaction(time.Now()); return nil }))
		}
		if st := r.Keys(); !st.CopyOwed || st.Rewriting {
			t.Errorf("%s: %+v", when, st)
		}
		r.inCommitter(func() {
			if n := strings.Count(log.String(), "may still hold what was there before"); n != 1 {
				t.Errorf("%s it is said %d times:\n%s", when, n, log.String())
			}
			log.Reset()
		})
	}
	owed("while it is full")
	r.reopen()
	owed("after a restart")
	r.drain(endpointA)
	r.rekeyed()
	if found := leaks(t, r.cfg.Dir); len(found) > 0 || r.Keys().CopyOwed {
		t.Errorf("readable: %q, %+v", found, r.Keys())
	}
	r.inCommitter(func() {
		if !strings.Contains(log.String(), "nothing is left in it") {
			t.Errorf("the log does not say that it is done:\n%s", log.String())
		}
	})
	r.reopen()
	if r.Keys().CopyOwed {
		t.Error("it is owed again")
	}
}

// TestCopyThatOutgrowsItsRoom: a copy that is owed and finds only on the way that there is no room is told like one that finds
// none at the beginning, once, however often it is tried.
func TestCopyThatOutgrowsItsRoom(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.store.cur.db.NoSync = true
	r.many("bulk", 1000, 2000)
	r.inCommitter(func() {
		r.compaction.forced.Store(true)
		for range 2 {
			c := newCompactor(r.dir.join(compactName), r.cfg.MaxBytes, mib)
			r.compaction.current = c
			c.err = r.store.view(c.copyAll)
			r.finishRound(c)
		}
		r.compaction.forced.Store(false)
		if n := strings.Count(log.String(), "may still hold what was there before"); n != 1 {
			t.Errorf("it is said %d times:\n%s", n, log.String())
		}
	})
}

// inCommitter runs fn in the committer, which is who writes the log of copies.
func (r *rig) inCommitter(fn func()) {
	r.t.Helper()
	r.must(r.do(func(*txn) error { fn(); return nil }))
}

// TestShortenedFileTakesEvents: a file whose end was given back is as good as any other.
func TestShortenedFileTakesEvents(t *testing.T) {
	r := newRig(t, withKeys(), smallest)
	r.fill(endpointA, 1000)
	r.drain(endpointA)
	r.must(r.do(func(*txn) error {
		before := r.store.allocated
		file, room := r.makeWay(before, r.store.space.used()+r.room.reserve)
		if file >= before || file != fileSize(r.store.file) || file+room > r.cfg.MaxBytes {
			t.Errorf("%d of %d bytes, and %d for the copy", file, before, room)
		}
		return nil
	}))
	n := r.fill(endpointA, 1000)
	if got := len(r.drain(endpointA)); got != n || n < 1000 {
		t.Errorf("%d of %d are delivered", got, n)
	}
	r.must(r.do(func(tx *txn) error { tx.put(layout.Meta, layout.KeyStale, nothing); return nil }))
	r.reopen()
	if !r.Keys().CopyOwed {
		t.Error("a start does not see what is owed")
	}
}
