package spool

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/spool/internal/layout"
)

// TestFreshLeases: what is due at once comes leased with its commit, what is delayed comes as a hint.
func TestFreshLeases(t *testing.T) {
	r := newRig(t)
	r.close()
	r.collect(&r.cfg)
	r.open()
	r.append(event("now", endpointA, "x"))
	later := event("later", endpointA, "x")
	later.NotBefore = time.Now().Add(time.Hour).Truncate(time.Microsecond)
	r.append(later)
	r.mu.Lock()
	got := r.committed
	r.mu.Unlock()
	if len(got) != 2 || got[0].Lease == nil || !got[0].Lease.Fresh || got[0].Lease.Event.ID != "now" {
		t.Fatalf("committed: %+v", got)
	}
	if got[1].Lease != nil || !got[1].DueAt.Equal(later.NotBefore) {
		t.Fatalf("hint: %+v", got[1])
	}
	if l, next, _ := r.Lease(endpointA, r.now(), 5, 1<<20); len(l) != 0 || !next.Equal(later.NotBefore) {
		t.Errorf("leased beside the fresh one: %+v, next %v", l, next)
	}
	r.Release(got[0].Lease)
	l := r.lease(endpointA, 5)
	if len(l) != 1 || l[0].Fresh || l[0].Event.ID != "now" {
		t.Fatalf("leased after the release: %+v", l)
	}
	r.Release(got[0].Lease) // the old lease means nothing any more
	if again := r.lease(endpointA, 5); len(again) != 0 {
		t.Errorf("a stale release gave the event away: %+v", again)
	}
	r.finish(l[0], delivered(l[0]))
	if err := r.Retry(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.committed[len(r.committed)-1]; last.Lease != nil || last.Endpoint != endpointA || last.DueAt.After(r.now()) {
		t.Errorf("hint of a replay: %+v", last)
	}
}

// TestNobodyGetsAnEventTwice: accepts, leases, results and retries at once, and every lease has the event to itself.
func TestNobodyGetsAnEventTwice(t *testing.T) {
	r := newRig(t)
	r.close()
	var held sync.Map
	var sent, twice atomic.Int64
	work := func(l *Lease) {
		if _, taken := held.LoadOrStore(l.Event.ID, true); taken {
			twice.Add(1)
		}
		res := delivered(l)
		if l.Event.Seq%3 == 0 && l.Progress.Attempts == 0 {
			res = Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: time.Now()}
		} else {
			sent.Add(1)
		}
		held.Delete(l.Event.ID)
		r.Finish(l, res)
	}
	fresh := make(chan *Lease, 10_000)
	r.cfg.Committed = func(list []Committed) {
		for _, c := range list {
			fresh <- c.Lease
		}
	}
	r.open()
	r.store.cur.db.NoSync = true
	const n = 800
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range n / 8 {
				r.append(event(fmt.Sprintf("%d-%d", w, i), endpointA, "x"))
			}
		})
		wg.Go(func() {
			for sent.Load() < n && !t.Failed() {
				select {
				case l := <-fresh:
					if l.Event.Seq%2 == 0 {
						work(l)
					} else {
						r.Release(l)
					}
				default:
					for _, l := range r.lease(endpointA, 5) {
						work(l)
					}
				}
			}
		})
	}
	wg.Wait()
	if twice.Load() > 0 || sent.Load() != n {
		t.Errorf("%d sent of %d, %d at the same time by two", sent.Load(), n, twice.Load())
	}
}

func TestLeaseLimits(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		r.append(event(fmt.Sprint(i), endpointA, string(make([]byte, 1000))))
	}
	tests := []struct {
		max   int
		bytes int64
		want  int
	}{{0, 1 << 20, 0}, {2, 1 << 20, 2}, {10, 1 << 20, 5}, {10, 2500, 2}, {10, 0, 1}, {10, 1, 1}}
	for _, tt := range tests {
		leases, next, err := r.Lease(endpointA, r.now(), tt.max, tt.bytes)
		if err != nil || len(leases) != tt.want {
			t.Errorf("max %d, %d bytes: %d leased (%v), want %d", tt.max, tt.bytes, len(leases), err, tt.want)
		}
		if more := tt.want < 5 && tt.max > 0; next.IsZero() == more {
			t.Errorf("max %d, %d bytes: next %v", tt.max, tt.bytes, next)
		}
		for _, l := range leases {
			r.Release(l)
		}
	}
	if leases, next, err := r.Lease("unknown", r.now(), 5, 1); len(leases) != 0 || !next.IsZero() || err != nil {
		t.Errorf("an unknown endpoint: %v, %v, %v", leases, next, err)
	}
}

// TestLastSeen: the latest time that was seen survives a restart, until the next one has brought forward what it stands
// for.
func TestLastSeen(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use)
	if !r.LastSeen().IsZero() {
		t.Errorf("a new spool has seen %v", r.LastSeen())
	}
	r.append(event("a", endpointA, "x"))
	start := c.now()
	if _, _, err := r.Lease("https://b.example", start.Add(2*time.Minute), 1, mib); err != nil {
		t.Fatal(err)
	}
	r.append(event("b", "https://b.example", "x"))
	if seen := r.LastSeen(); !seen.Equal(start.Add(2 * time.Minute)) {
		t.Errorf("seen %v, want the time of the lease, two minutes after %v", seen, start)
	}
	r.reopen()
	if seen := r.LastSeen(); !seen.Equal(c.now()) {
		t.Errorf("seen %v, want now, %v", seen, c.now())
	}
}

// TestCountersOfTheFirstVersions: a record without the time reads as one that has seen none.
func TestCountersOfTheFirstVersions(t *testing.T) {
	c := counters{nextSeq: 7, nextEndpoint: 2, nextOutbox: 3, salvageLost: 4}
	e := layout.NewEncoder(nil, layout.KindCounters)
	e.Uint(c.nextSeq)
	e.Uint(uint64(c.nextEndpoint))
	e.Uint(c.nextOutbox)
	for _, n := range c.fields() {
		e.Int(*n)
	}
	if got, err := decodeCounters(e.Record()); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
}
