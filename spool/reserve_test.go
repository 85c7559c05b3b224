package spool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
)

// TestPassedOverAndLost: a Lease passes over an event that a person's change or the sweep has reserved. When that change
// fails, somebody is told that the event is there after all.
func TestPassedOverAndLost(t *testing.T) {
	changes := map[string]func(r *rig) error{
		"retry":  func(r *rig) error { return r.Retry(context.Background(), "a") },
		"delete": func(r *rig) error { return r.Delete(context.Background(), "a") },
		"expiry": func(r *rig) error { return r.do(sweepOp{r.Spool}.apply) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { passedOver(t, change) })
		})
	}
}

func passedOver(t *testing.T, change func(r *rig) error) {
	c := newClock()
	r := newRig(t, c.use)
	r.close()
	r.collect(&r.cfg)
	r.open()
	ev := event("a", endpointA, "x")
	ev.AcceptedAt, ev.TTL = c.now(), time.Minute
	r.append(ev)
	r.Release(r.committed[0].Lease)
	c.pass(time.Hour)
	whole := r.store.commit
	broken := true
	r.store.commit = func(tx *bolt.Tx) error {
		if !broken {
			return whole(tx)
		}
		broken = false
		if got, next, err := r.Lease(endpointA, c.now(), 1, 1<<20); len(got) != 0 || !next.IsZero() || err != nil {
			t.Errorf("leased while reserved: %v, %v, %v", got, next, err)
		}
		return errors.Join(tx.Rollback(), errDisk)
	}
	r.mustBe(change(r), ErrUnwritable)
	r.mu.Lock()
	last := r.committed[len(r.committed)-1]
	r.mu.Unlock()
	if last.Lease != nil || last.Endpoint != endpointA || last.DueAt.After(c.now()) {
		t.Errorf("told last: %+v", last)
	}
	got := r.lease(endpointA, 1)
	if len(got) != 1 {
		t.Fatal("nothing to lease")
	}
	r.Release(got[0])
}

// TestChangesOfOneTransaction: an event that goes out with the transaction that a person's change shares is in flight
// already; changes of one event that share a transaction follow each other.
func TestChangesOfOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.close()
		r.collect(&r.cfg)
		r.open()
		later := event("later", endpointA, "x")
		later.NotBefore = time.Now().Add(time.Hour)
		r.append(later)
		hold := r.holdCommitter()
		queued := func(fn func() error) <-chan error {
			answer := make(chan error, 1)
			go func() { answer <- fn() }()
			synctest.Wait()
			return answer
		}
		accepted := r.appendLater(event("now", endpointA, "x"))
		retried := queued(func() error { return r.Retry(t.Context(), "now") })
		deleted := queued(func() error { return r.Delete(t.Context(), "now") })
		retriedLater := queued(func() error { return r.Retry(t.Context(), "later") })
		deletedLater := queued(func() error { return r.Delete(t.Context(), "later") })
		close(hold)
		r.must(<-accepted)
		r.mustBe(<-retried, ErrBusy)
		r.mustBe(<-deleted, ErrBusy)
		r.must(<-retriedLater)
		r.must(<-deletedLater)
		if got := r.lease(endpointA, 5); len(got) != 0 {
			t.Errorf("a second lease: %+v", got)
		}
		for _, c := range r.committed {
			if c.Lease != nil {
				r.finish(c.Lease, delivered(c.Lease))
			}
		}
		if st := r.Stats(); st.Delivered != 1 || st.Pending != 0 || st.Leased != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestEndOfAnEndedLease: nothing is recorded, and the holder is told so.
func TestEndOfAnEndedLease(t *testing.T) {
	r := newRig(t)
	r.append(event("a", endpointA, "x"))
	released := r.lease(endpointA, 1)[0]
	r.Release(released)
	l := r.lease(endpointA, 1)[0]
	strange := &Lease{Event: event("none", endpointA, "x")}
	for name, ended := range map[string]*Lease{"released": released, "never given out": strange} {
		done := make(chan error, 1)
		res := delivered(ended)
		res.Done = func(err error) { done <- err }
		r.Finish(ended, res)
		select {
		case err := <-done:
			r.mustBe(err, ErrLeaseEnded)
		default:
			t.Errorf("%s: not told before Finish returned", name)
		}
	}
	r.Finish(released, delivered(released)) // Done may be nil
	r.finish(l, delivered(l))
	if st := r.Stats(); st.Delivered != 1 {
		t.Errorf("stats %+v", st)
	}
}
