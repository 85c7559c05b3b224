package spool

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// endless keeps the queue filled: each commit finds the next operation waiting, as under a load that never ends. The load
// ends by itself after a while, so that a committer that looks at nothing else fails the test instead of hanging it.
func endless(s *Spool) (ended *atomic.Bool) {
	ended = new(atomic.Bool)
	start := time.Now()
	whole := s.store.commit
	s.store.commit = func(tx *bolt.Tx) error {
		switch {
		case ended.Load():
		case time.Since(start) > time.Minute:
			ended.Store(true)
		default:
			s.SaveEndpointState("busy", []byte("x"), nil)
		}
		return whole(tx)
	}
	s.SaveEndpointState("busy", []byte("x"), nil)
	return ended
}

// TestLoadHoldsNothingUp: what the committer looks after by itself goes on while there is always a next batch.
func TestLoadHoldsNothingUp(t *testing.T) {
	gone := make(chan struct{})
	r := newRig(t, func(c *Config) { c.Expired = func([]*Lease) { close(gone) } })
	r.store.cur.db.NoSync = true
	ev := event("short", endpointA, "x")
	ev.TTL = 100 * time.Millisecond
	r.append(ev)
	ended := endless(r.Spool)
	<-gone
	if ended.Swap(true) {
		t.Error("a TTL passed only when the load had ended")
	}
}

// TestCopyEndsUnderLoad: a copy gets its turns, too.
func TestCopyEndsUnderLoad(t *testing.T) {
	r := newRig(t)
	r.store.cur.db.NoSync = true
	r.append(event("a", endpointA, "x"))
	ended := endless(r.Spool)
	r.must(r.do(func(*txn) error {
		c := newCompactor(r.dir.join(compactName), r.cfg.MaxBytes, mib)
		c.err = errors.New("a round that ended")
		r.compaction.current = c
		r.compaction.ready <- c
		return nil
	}))
	r.until("rid of the copy", func(Stats) (done bool) {
		r.must(r.do(func(*txn) error { done = r.compaction.current == nil; return nil }))
		return done
	})
	if ended.Swap(true) {
		t.Error("the copy had to wait until the load had ended")
	}
}
