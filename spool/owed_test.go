package spool

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestFullWhileReceiversAreDown: the spool is filled to its bound while nothing can be delivered. Every attempt's result is
// recorded all the same, round after round until all are dead letters, and the spool takes events again afterwards.
func TestFullWhileReceiversAreDown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		maxBytes             int64
		size, answer, target int
		outbox               bool
	}{
		{mib, 0, 0, 20, false}, {mib, 50, 1024, 20, true}, {mib, 1000, 0, 400, true}, {mib, 1000, 1024, 20, false},
		{4 * mib, 0, 0, 400, false}, {4 * mib, 0, 1024, 3000, true}, {4 * mib, 1000, 1024, 400, true}, {4 * mib, 20_000, 1024, 20, false},
	}
	for _, tt := range tests {
		name := fmt.Sprintf("%d MiB, bodies of %d, answers of %d, targets of %d, outbox %v", tt.maxBytes/mib, tt.size, tt.answer, tt.target, tt.outbox)
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.MaxBytes, c.MaxEventBytes, c.MaxEndpointShare, c.Outbox = tt.maxBytes, tt.maxBytes/4, 1, tt.outbox
			})
			r.store.cur.db.NoSync = true
			r.target = strings.Repeat("t", tt.target)
			failFull(r, tt.size, tt.answer)
		})
	}
}

func failFull(r *rig, size, answer int) {
	n := r.fill(endpointA, size)
	now := time.Now()
	for round := range 6 {
		res := Result{Verdict: VerdictRetry}
		if round == 5 {
			res.Verdict, res.Reason = VerdictDead, ReasonExhausted
		}
		if answer > 0 {
			res.Answer = &Answer{StatusCode: 500, Body: bytes.Repeat([]byte("x"), answer)}
		}
		now = now.Add(time.Hour)
		res.NextAttempt = now.Add(time.Hour)
		if got := r.failDue(now, res); got != n {
			r.t.Fatalf("round %d: %d of %d results were recorded: %+v", round, got, n, r.Stats())
		}
	}
	if st := r.Stats(); st.DeadLetter != int64(n) || !st.Writable {
		r.t.Errorf("%d events, and %+v", n, st)
	}
	err := r.DeadLetters(Query{}, func(v View) bool {
		if v.Attempts != 6 || len(v.History) < 2 || v.History[0].Number != 1 || lastAttempt(&v).Number != 6 {
			r.t.Fatalf("event %s has %d attempts, and of them %+v", v.ID, v.Attempts, v.History)
		}
		r.must(r.DeleteDead(r.t.Context(), v.ID))
		return true
	})
	r.must(err)
	r.until("empty again", func(st Stats) bool { return !st.Full })
}

// failDue ends an attempt of everything that is due, and returns how many results were recorded before one had to wait.
func (r *rig) failDue(now time.Time, res Result) int {
	var recorded atomic.Int64
	for {
		leases, _, err := r.Lease(endpointA, now, 50, 1<<30)
		r.must(err)
		if len(leases) == 0 {
			return int(recorded.Load())
		}
		var wg sync.WaitGroup
		for _, l := range leases {
			wg.Add(1)
			one := res
			one.Attempt = attempt(l, 0)
			one.Done = func(err error) {
				if err == nil {
					recorded.Add(1)
				}
				wg.Done()
			}
			r.Finish(l, one)
		}
		done := make(chan struct{})
		go func() {
			wg.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			n := int(recorded.Load())
			close(r.giveUp) // what cannot be written must not hold up the end of the test
			return n
		}
	}
}
