package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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
	r := newRig(t, func(c *Config) { c.MaxBytes = 256 * mib; c.MaxEndpointShare = 1 })
	r.store.cur.db.NoSync = true
	r.many("bulk", 20_000, 2000)
	peak := r.Stats().FileBytes
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
