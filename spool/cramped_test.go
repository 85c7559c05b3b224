package spool

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// failIf makes commits fail whose outcome the test does not want, and counts all of them.
func failIf(s *Spool, cause error, unwanted func(tx *bolt.Tx) bool) (commits *atomic.Int64) {
	commits = new(atomic.Int64)
	whole := s.store.commit
	s.store.commit = func(tx *bolt.Tx) error {
		commits.Add(1)
		if unwanted(tx) {
			return errors.Join(tx.Rollback(), cause)
		}
		return whole(tx)
	}
	return commits
}

func has(tx *bolt.Tx, id layout.Bucket, seq uint64) bool {
	return tx.Bucket(id.Name()).Get(layout.SeqKey(seq)) != nil
}

// TestResultsBeforeAccepts: a transaction without room is tried without its acceptances, not in ever smaller parts of
// them: each failure makes bbolt look through the whole file.
func TestResultsBeforeAccepts(t *testing.T) {
	r := newRig(t)
	const results, accepts = 5, 1000
	for i := range results {
		r.append(event(fmt.Sprint("old", i), endpointA, "x"))
	}
	leases := r.lease(endpointA, results)
	commits := failIf(r.Spool, syscall.ENOSPC, func(tx *bolt.Tx) bool {
		last, _ := tx.Bucket(layout.Events.Name()).Cursor().Last()
		seq, ok := layout.Seq(last)
		return ok && seq > results
	})
	hold := r.holdCommitter()
	done := make(chan error, results)
	var answers []<-chan error
	for i := range accepts {
		answers = append(answers, r.appendLater(event(fmt.Sprint("new", i), endpointA, "x")))
		if i < results {
			res := delivered(leases[i])
			res.Done = func(err error) { done <- err }
			r.Finish(leases[i], res)
		}
	}
	close(hold)
	for _, answer := range answers {
		r.mustBe(<-answer, ErrFull)
	}
	for range results {
		r.must(<-done)
	}
	if n := commits.Load(); n > 2 {
		t.Errorf("%d commits", n)
	}
	if st := r.Stats(); !st.Writable || !st.Full || st.Delivered != results {
		t.Errorf("stats %+v", st)
	}
}

// TestFewAcceptsInPieces: of a few events some fit where not all of them do.
func TestFewAcceptsInPieces(t *testing.T) {
	r := newRig(t)
	r.append(event("first", endpointA, "x"))
	failIf(r.Spool, syscall.ENOSPC, func(tx *bolt.Tx) bool { return has(tx, layout.Events, 20) })
	hold := r.holdCommitter()
	var answers []<-chan error
	for i := range 40 {
		answers = append(answers, r.appendLater(event(fmt.Sprint(i), endpointA, "x")))
	}
	close(hold)
	fit := 0
	for _, answer := range answers {
		if err := <-answer; err == nil {
			fit++
		} else {
			r.mustBe(err, ErrFull)
		}
	}
	if fit != 18 || r.Stats().Pending != 19 {
		t.Errorf("%d fit: %+v", fit, r.Stats())
	}
}

// TestVisibleWithoutRoom: a commit that is visible is not run again in pieces, whatever made it fail.
func TestVisibleWithoutRoom(t *testing.T) {
	r := newRig(t)
	f := breakDisk(r.Spool)
	f.cause = syscall.ENOSPC
	hold := r.holdCommitter()
	f.visible.Store(true)
	f.noSync.Store(true)
	var answers []<-chan error
	for i := range 20 {
		answers = append(answers, r.appendLater(event(fmt.Sprint(i), endpointA, "x")))
	}
	close(hold)
	for _, answer := range answers {
		r.mustBe(<-answer, ErrUnknownOutcome)
	}
	if n := f.commits.Load(); n != 1 {
		t.Errorf("%d commits", n)
	}
	f.visible.Store(false)
	f.noSync.Store(false)
	r.until("writable again", func(st Stats) bool { return st.Writable })
	if n := r.Stats().Pending; n != 20 {
		t.Errorf("%d are pending", n)
	}
}

// TestSweepWithoutRoom: what a pass over old rows needs is less than the disk has, and that breaks nothing.
func TestSweepWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.DeadLetterRetention = time.Second })
		for i := range 20 {
			r.append(event(fmt.Sprint(i), endpointA, "x"))
		}
		var over atomic.Bool
		dead, roomy := 0, false // the committer's
		failIf(r.Spool, syscall.ENOSPC, func(tx *bolt.Tx) bool {
			roomy = roomy || r.sweep.size <= 4
			return !roomy && dead == 20 && !over.Load()
		})
		for _, l := range r.lease(endpointA, 20) {
			r.Finish(l, Result{Verdict: VerdictDead, Reason: ReasonExpired, Done: func(error) { dead++ }})
		}
		for range 60 {
			time.Sleep(time.Second)
			if !r.Writable() {
				over.Store(true)
				t.Fatal("a full disk counts as a broken one")
			}
		}
		if st := r.Stats(); st.DeadLetter != 0 {
			t.Errorf("still there: %+v", st)
		}
		r.must(r.do(func(*txn) error {
			if r.sweep.size != sweepDrops {
				t.Errorf("%d rows at a time when there is room", r.sweep.size)
			}
			return nil
		}))
	})
}

// TestYoungestStateStays: results that are written out of order leave the youngest state of their endpoint.
func TestYoungestStateStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, id := range []string{"a", "b"} {
			r.append(event(id, endpointA, "x"))
		}
		var broken, bad atomic.Bool
		broken.Store(true)
		bad.Store(true)
		leases := r.lease(endpointA, 2)
		failIf(r.Spool, errDisk, func(tx *bolt.Tx) bool {
			return broken.Load() || bad.Load() && has(tx, layout.Done, leases[0].Event.Seq)
		})
		done := []chan error{make(chan error, 1), make(chan error, 1)}
		for i, state := range []string{"older", "younger"} {
			res := delivered(leases[i])
			res.EndpointState = []byte(state)
			res.Done = func(err error) { done[i] <- err }
			r.Finish(leases[i], res)
		}
		time.Sleep(time.Minute)
		broken.Store(false)
		r.must(<-done[1])
		bad.Store(false)
		r.must(<-done[0])
		if got := r.EndpointStates()[endpointA]; string(got) != "younger" {
			t.Errorf("the state is %q", got)
		}
	})
}
