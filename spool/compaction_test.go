package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"postern/spool/internal/layout"
)

// many appends n events at a time-saving rate.
func (r *rig) many(prefix string, n, size int) {
	r.t.Helper()
	body := strings.Repeat("x", size)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				r.append(event(fmt.Sprint(prefix, i), endpointA, body))
			}
		})
	}
	wg.Wait()
}

// TestFileShrinksWhileUsed fills and drains while a background load goes on: the file becomes short again by itself, and
// not one event of the load is lost or sent twice over the exchange of the files.
func TestFileShrinksWhileUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxBytes = 256 * mib; c.MaxEndpointShare = 1 })
	r.store.cur.db.NoSync = true
	r.many("bulk", 20_000, 6000)
	peak := r.Stats().FileBytes
	if peak/5 < compactMin+4*mib {
		t.Fatalf("a peak of %d bytes: a fifth of it is not worth a copy while something is written", peak)
	}
	r.drain(endpointA)

	stop := make(chan struct{})
	var load sync.WaitGroup
	sent := make(map[string]int)
	load.Go(func() {
		const endpoint = "https://load.example"
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			ev := event(fmt.Sprint("load", i), endpoint, "x")
			ev.IdempotencyKey = fmt.Sprint("k", i)
			r.append(ev)
			for _, l := range r.lease(endpoint, 10) {
				sent[l.Event.ID]++
				r.finish(l, delivered(l))
			}
		}
	})
	r.until("compacted", func(st Stats) bool { return st.FileBytes < peak/5 })
	close(stop)
	load.Wait()
	for id, n := range sent {
		if n != 1 {
			t.Errorf("event %s was sent %d times", id, n)
		}
	}
	if info, err := os.Stat(filepath.Join(r.cfg.Dir, dbName)); err != nil || info.Size() > peak/5 {
		t.Errorf("the file has %d bytes, %d at its peak", info.Size(), peak)
	}
	if files, _ := filepath.Glob(filepath.Join(r.cfg.Dir, "*compact*")); len(files) > 0 {
		t.Errorf("left over: %q", files)
	}
	r.reopen()
	if st := r.Stats(); st.Delivered != int64(20_000+len(sent)) || st.Pending != 0 {
		t.Errorf("after the restart: %+v, want %d delivered", st, 20_000+len(sent))
	}
}

// TestBoundIsLowered: a file that is bigger than max_bytes allows since that was lowered comes back under it when what is
// in it does, although there is no room for a copy beside it within the bound.
func TestBoundIsLowered(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare = 8*mib, mib/4, 1 })
	r.fill(endpointA, 10_000)
	r.cfg.MaxBytes = mib
	r.reopen()
	if st := r.Stats(); st.FileBytes < 7*mib || !st.Full {
		t.Fatalf("%+v", st)
	}
	r.drain(endpointA)
	r.until("small again", func(st Stats) bool { return st.FileBytes <= mib && !st.Full })
	r.append(event("next", endpointA, strings.Repeat("x", 10_000)))
}

func TestCloseDuringCompaction(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxBytes = 256 * mib; c.MaxEndpointShare = 1 })
	r.store.cur.db.NoSync = true
	r.many("bulk", 12_000, 2000)
	r.drain(endpointA)
	began := make(chan struct{})
	_ = r.do(func(tx *txn) error {
		defer close(began)
		r.considerCompaction(time.Now())
		return nil
	})
	<-began
	r.reopen()
	if files, _ := filepath.Glob(filepath.Join(r.cfg.Dir, "*compact*")); len(files) > 0 {
		t.Errorf("left over: %q", files)
	}
	if st := r.Stats(); st.Delivered != 12_000 {
		t.Errorf("stats %+v", st)
	}
}

func TestOfflineCompact(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Outbox = true })
	r.many("bulk", 3000, 2000)
	r.drain(endpointA)
	r.append(event("last", endpointA, "x"))
	instance := r.InstanceID()
	before := r.Stats()
	r.close()
	var last, total int64
	was, is, err := Compact(r.cfg.Dir, func(d, t int64) { last, total = d, t })
	if err != nil || is >= was/2 || last == 0 || last > total {
		t.Fatalf("compact: %d -> %d, progress %d of %d, %v", was, is, last, total, err)
	}
	r.open()
	after := r.Stats()
	if after.Delivered != before.Delivered || after.OutboxRows != before.OutboxRows || r.InstanceID() != instance {
		t.Errorf("after: %+v, before: %+v", after, before)
	}
	if l := r.lease(endpointA, 10); len(l) != 1 || l[0].Event.ID != "last" {
		t.Errorf("leases %+v", l)
	}
}

// TestLeftOverCopy: what an earlier copy left is not taken for the beginning of this one.
func TestLeftOverCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), compactName)
	put := func() error {
		db, err := createCopy(path, 0)
		if err != nil {
			return err
		}
		w := bulkWriter{db: db}
		return errors.Join(w.put(layout.Events, layout.SeqKey(1), []byte("x")), w.close(), db.Close())
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	db, err := createCopy(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = db.View(func(tx *bolt.Tx) error {
		if n := tx.Bucket(layout.Events.Name()).Stats().KeyN; n != 0 {
			t.Errorf("%d rows in a new copy", n)
		}
		return nil
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := put(); err == nil || !strings.Contains(err.Error(), "earlier copy") {
		t.Errorf("where it cannot be removed: %v", err)
	}
}

// slowCopy starts a copy that keeps its snapshot until it is told to stop.
func (r *rig) slowCopy(budget int64) *compactor {
	r.t.Helper()
	c := newCompactor(r.dir.join(compactName), r.cfg.MaxBytes, budget)
	r.must(r.do(func(*txn) error {
		r.compaction.current, r.room.lent = c, budget
		r.round(func(*bolt.Tx) error {
			<-c.halted
			return errStopped
		})
		return nil
	}))
	return c
}

// TestCopyGivesWay: a copy in the making keeps the pages that were freed since from being used. It is given up before an
// event is refused, a summary is dropped, or the two files together outgrow their bound.
func TestCopyGivesWay(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare = 16*mib, mib, 1 })
	r.store.cur.db.NoSync = true
	const budget = 6 * mib
	c := r.slowCopy(budget)
	halted := func() bool { return c.stopped() != nil }
	rounds := 0
	for ; !halted() && rounds < 100; rounds++ {
		for i := range 20 {
			r.append(event(fmt.Sprint(rounds, "-", i), endpointA, strings.Repeat("x", 30_000)))
		}
		if size := r.Stats().FileBytes; !halted() && size+budget > r.cfg.MaxBytes {
			t.Fatalf("the file has %d bytes beside a copy of up to %d", size, budget)
		}
		r.drain(endpointA)
	}
	if st := r.Stats(); !halted() || st.HistoryDropped > 0 || st.Full {
		t.Errorf("after %d rounds: halted %v, %+v", rounds, halted(), st)
	}
	if n := r.fill(endpointA, 30_000); int64(n)*30_000 < r.cfg.MaxBytes/2 {
		t.Errorf("%d events fit when the copy is gone", n)
	}
}

// TestCopyLeavesTheReserve: results are recorded although a copy keeps pages from being used.
func TestCopyLeavesTheReserve(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare = 16*mib, mib, 1 })
	r.store.cur.db.NoSync = true
	r.fill(endpointA, 3000)
	c := r.slowCopy(mib)
	var failed atomic.Int64
	r.must(r.do(func(*txn) error {
		whole := r.store.commit
		r.store.commit = func(tx *bolt.Tx) error {
			err := whole(tx)
			if err != nil {
				failed.Add(1)
			}
			return err
		}
		return nil
	}))
	n := 0
	for _, l := range r.lease(endpointA, 2000) {
		r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: time.Now().Add(time.Hour)})
		n++
	}
	if c.stopped() == nil {
		t.Errorf("the copy goes on after %d results in a full spool", n)
	}
	if info, err := os.Stat(r.dir.file()); err != nil || info.Size() > r.cfg.MaxBytes {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if st := r.Stats(); !st.Writable || failed.Load() > 0 {
		t.Errorf("%d commits failed: %+v", failed.Load(), st)
	}
}

// TestCopyStaysInItsBudget: a copy that outgrows what it was lent ends, and the spool goes on with its file.
func TestCopyStaysInItsBudget(t *testing.T) {
	r := newRig(t)
	r.store.cur.db.NoSync = true
	r.many("bulk", 1000, 2000)
	c := newCompactor(r.dir.join(compactName), r.cfg.MaxBytes, mib)
	r.must(r.store.view(func(tx *bolt.Tx) error {
		if err := c.copyAll(tx); !errors.Is(err, berrors.ErrMaxSizeReached) {
			t.Errorf("copied two megabytes into one: %v", err)
		}
		return nil
	}))
	if info, err := os.Stat(c.path); err != nil || info.Size() > mib {
		t.Errorf("the copy has %d bytes, %v", info.Size(), err)
	}
	r.must(c.db.Close())
	r.must(os.Remove(c.path))
}
