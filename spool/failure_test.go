package spool

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
)

var errDisk = errors.New("the disk failed")

// faults makes commits of a store fail.
type faults struct {
	st      *store
	fail    atomic.Bool
	visible atomic.Bool // the commit is made and reported as failed
	noSync  atomic.Bool // the meta page cannot be written once more
	commits atomic.Int64
	cause   error
}

func breakDisk(s *Spool) *faults {
	f := &faults{st: s.store, cause: errDisk}
	whole := s.store.commit
	s.store.commit = func(tx *bolt.Tx) error {
		f.commits.Add(1)
		switch {
		case f.visible.Load():
			return errors.Join(whole(tx), f.cause)
		case f.fail.Load():
			return errors.Join(tx.Rollback(), f.cause)
		}
		return whole(tx)
	}
	sync := s.store.sync
	s.store.sync = func() error {
		if f.noSync.Load() {
			return f.cause
		}
		return sync()
	}
	return f
}

// TestFailingDisk: accepts are refused, results wait, all is well again when the disk is.
func TestFailingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		f := breakDisk(r.Spool)
		for i := range 4 {
			r.append(event(fmt.Sprint(i), endpointA, "x"))
		}
		leases := r.lease(endpointA, 4)
		f.fail.Store(true)
		if _, err := r.Append(t.Context(), event("refused", endpointA, "x")); !errors.Is(err, ErrUnwritable) {
			t.Fatalf("append: %v", err)
		}
		var recorded atomic.Int64
		for _, l := range leases {
			res := delivered(l)
			res.Done = func(err error) {
				if err == nil {
					recorded.Add(1)
				}
			}
			r.Finish(l, res)
		}
		time.Sleep(5 * time.Second)
		if recorded.Load() != 0 || r.Stats().Writable || r.Stats().Pending != 4 || r.Stats().Leased != 4 {
			t.Fatalf("recorded %d on a failing disk: %+v", recorded.Load(), r.Stats())
		}
		if got := r.lease(endpointA, 4); len(got) != 0 {
			t.Fatalf("leased while their results wait: %+v", got)
		}
		if n := f.commits.Load(); n > 30 {
			t.Errorf("%d tries in 5 s", n)
		}
		f.fail.Store(false)
		time.Sleep(2 * time.Second)
		if st := r.Stats(); recorded.Load() != 4 || !st.Writable || st.Pending != 0 || st.Delivered != 4 {
			t.Fatalf("recorded %d of 4: %+v", recorded.Load(), st)
		}
		r.append(event("again", endpointA, "x"))
		r.reopen()
		if _, err := r.Get("refused", false); !errors.Is(err, ErrNotFound) {
			t.Errorf("the refused event: %v", err)
		}
	})
}

// TestVisibleFailure: the last sync fails after the new state is visible. Where the state can be synced after all, the
// acceptance counts; the results are recorded once.
func TestVisibleFailure(t *testing.T) {
	r := newRig(t)
	f := breakDisk(r.Spool)
	r.append(event("a", endpointA, "x"))
	l := r.lease(endpointA, 1)[0]
	f.visible.Store(true)
	r.append(event("b", endpointA, "x")) // saved by the second sync
	r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: time.Now()})
	f.visible.Store(false)
	for _, id := range []string{"a", "b"} {
		if _, err := r.Get(id, false); err != nil {
			t.Errorf("event %s: %v", id, err)
		}
	}
	if v, _ := r.Get("a", false); v.Attempts != 1 {
		t.Errorf("one attempt was recorded as %d", v.Attempts)
	}
}

// TestVisibleAndUnsettled: the second sync fails too. The outcome is unknown then, nothing is written over, and the state
// is the visible one when the disk is back. The result is tried again though it is there, and counts once.
func TestVisibleAndUnsettled(t *testing.T) {
	tests := map[string]struct {
		result   func(*Lease) Result
		state    State
		attempts int
		rows     int64 // of the outbox: two acceptances and what became of a
	}{
		"delivered": {delivered, StateDelivered, 1, 3},
		"retry": {func(l *Lease) Result {
			return Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: time.Now()}
		}, StateFailed, 1, 3},
		"put off without an attempt": {func(*Lease) Result {
			return Result{Verdict: VerdictRetry, NextAttempt: time.Now()}
		}, StatePending, 0, 3},
		"dead": {func(l *Lease) Result {
			return Result{Attempt: attempt(l, 404), Verdict: VerdictDead, Reason: ReasonPermanent}
		}, StateDeadLetter, 1, 3},
		"dead without an attempt": {func(*Lease) Result {
			return Result{Verdict: VerdictDead, Reason: ReasonExpired}
		}, StateDeadLetter, 0, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Outbox = true })
			f := breakDisk(r.Spool)
			r.append(event("a", endpointA, "x"))
			l := r.lease(endpointA, 1)[0]
			f.visible.Store(true)
			f.noSync.Store(true)
			done := make(chan error, 1)
			res := tt.result(l)
			res.Done = func(err error) { done <- err }
			hold := r.holdCommitter()
			r.Finish(l, res)
			b := r.appendLater(event("b", endpointA, "x"))
			close(hold)
			r.mustBe(<-b, ErrUnknownOutcome)
			if st := r.Stats(); st.Writable || st.Pending+st.Failed+st.DeadLetter+st.Delivered != 2 {
				t.Errorf("stats while in doubt: %+v", st)
			}
			f.visible.Store(false)
			f.noSync.Store(false)
			r.must(<-done)
			if v, err := r.Get("b", false); err != nil || v.State != StatePending {
				t.Errorf("the event in doubt: %+v, %v", v, err)
			}
			if v, _ := r.Get("a", false); v.Attempts != tt.attempts || v.State != tt.state {
				t.Errorf("%d attempts, %v", v.Attempts, v.State)
			}
			if n := r.Stats().OutboxRows; n != tt.rows {
				t.Errorf("%d rows of outbox, want %d", n, tt.rows)
			}
			if h := r.Stats().LastHour; h.Delivered+h.Failed > 1 {
				t.Errorf("the last hour: %+v", h)
			}
		})
	}
}

// holdCommitter makes the committer wait within an operation, and returns once it does. What is queued until the channel
// is closed shares the next transaction.
func (r *rig) holdCommitter() (hold chan struct{}) {
	hold = make(chan struct{})
	held := make(chan struct{})
	go func() {
		_ = r.do(func(*txn) error {
			close(held)
			<-hold
			return nil
		})
	}()
	<-held
	return hold
}

// appendLater appends without waiting for the answer, and returns once the event is queued.
func (r *rig) appendLater(ev *Event) <-chan error {
	answer := make(chan error, 1)
	op := &appendOp{ev: ev, rec: encodeEvent(ev, nil)}
	at, err := r.queue.add(op)
	r.must(err)
	go func() {
		<-at.done
		answer <- op.err
	}()
	return answer
}

// TestOneBadResult: a result that can never be written holds up nothing else.
func TestFullFileKeepsResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		f := breakDisk(r.Spool)
		f.cause = syscall.ENOSPC
		r.append(event("a", endpointA, "x"))
		l := r.lease(endpointA, 1)[0]
		f.fail.Store(true)
		_, err := r.Append(t.Context(), event("b", endpointA, "x"))
		if !errors.Is(err, ErrFull) {
			t.Errorf("append to a full disk: %v", err)
		}
		if !r.Stats().Full {
			t.Error("not full")
		}
		f.fail.Store(false)
		r.finish(l, delivered(l))
		time.Sleep(3 * time.Second)
		if st := r.Stats(); st.Full || !st.Writable {
			t.Errorf("still full: %+v", st)
		}
		r.append(event("c", endpointA, "x"))
	})
}

// TestSlowCommit: who waits too long is told that the outcome is unknown; who was not begun is told that nothing is.
func TestSlowCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		hold := make(chan struct{})
		whole := r.store.commit
		r.store.commit = func(tx *bolt.Tx) error {
			<-hold
			return whole(tx)
		}
		begun, waiting := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := r.Append(t.Context(), event("begun", endpointA, "x"))
			begun <- err
		}()
		synctest.Wait()
		go func() {
			_, err := r.Append(t.Context(), event("waiting", endpointA, "x"))
			waiting <- err
		}()
		if err := <-begun; !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("begun: %v", err)
		}
		if err := <-waiting; !errors.Is(err, ErrUnwritable) {
			t.Errorf("waiting: %v", err)
		}
		close(hold)
		r.append(event("next", endpointA, "x"))
		if _, err := r.Get("begun", false); err != nil {
			t.Errorf("begun: %v", err)
		}
		if _, err := r.Get("waiting", false); !errors.Is(err, ErrNotFound) {
			t.Errorf("waiting: %v", err)
		}
	})
}

// TestSlowDiskGathers: whoever comes while the disk works is in the next commit, however long that takes. Else there would be
// more batches than commits, and accepting would end although the disk could take everything.
func TestSlowDiskGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const slow = 400 * time.Millisecond
		whole := r.store.commit
		r.must(r.do(func(*txn) error {
			r.store.commit = func(tx *bolt.Tx) error {
				time.Sleep(slow)
				return whole(tx)
			}
			return nil
		}))
		var wg sync.WaitGroup
		for i := range 200 {
			time.Sleep(20 * time.Millisecond)
			wg.Go(func() {
				start := time.Now()
				_, err := r.Append(t.Context(), event(fmt.Sprint("e", i), endpointA, "x"))
				if took := time.Since(start); err != nil || took > 4*slow { // what the committer does by itself may come between
					t.Errorf("event %d after %v: %v", i, took, err)
				}
			})
		}
		wg.Wait()
		r.must(r.do(func(*txn) error { r.store.commit = whole; return nil }))
	})
}
