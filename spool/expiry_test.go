package spool

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// expiring is a spool whose clock the test owns, and the IDs that it gave up.
func expiring(t *testing.T) (r *rig, c *clock, given func() []string) {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	c = newClock()
	r = newRig(t, c.use, func(cfg *Config) {
		cfg.Expired = func(list []*Lease) {
			mu.Lock()
			defer mu.Unlock()
			for _, l := range list {
				ids = append(ids, l.Event.ID)
				if l.Event.Body != nil || l.Event.Headers != nil || l.Event.Endpoint != endpointA || l.Event.AcceptedAt.IsZero() {
					t.Errorf("given up: %+v", l.Event)
				}
			}
		}
	})
	return r, c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ids)
	}
}

func TestTTLPassesWithoutALease(t *testing.T) {
	r, c, given := expiring(t)
	for id, ttl := range map[string]time.Duration{"short": time.Minute, "long": time.Hour, "none": 0} {
		ev := event(id, endpointA, "x")
		ev.AcceptedAt, ev.TTL = c.now(), ttl
		r.append(ev)
	}
	c.pass(2 * time.Minute)
	r.sweepNow()
	v, err := r.Get("short", false)
	if err != nil || v.State != StateDeadLetter || v.DeadReason != ReasonExpired || v.DeadAt.After(c.now()) || v.Size != 1 {
		t.Errorf("short: %+v, %v", v, err)
	}
	for _, id := range []string{"long", "none"} {
		if v, _ := r.Get(id, false); v.State != StatePending {
			t.Errorf("%s is %v", id, v.State)
		}
	}
	if !slices.Equal(given(), []string{"short"}) {
		t.Errorf("told: %v", given())
	}
	// A replay begins the time to live anew.
	if err := r.Retry(t.Context(), "short"); err != nil {
		t.Fatal(err)
	}
	c.pass(30 * time.Second)
	r.sweepNow()
	if v, _ := r.Get("short", false); v.State != StatePending {
		t.Errorf("after the replay: %v", v.State)
	}
	c.pass(time.Minute)
	r.sweepNow()
	if v, _ := r.Get("short", false); v.State != StateDeadLetter {
		t.Errorf("a minute after the replay: %v", v.State)
	}
}

// An event that is out is its holder's; what the holder says counts.
func TestTTLLeavesWhatIsOut(t *testing.T) {
	r, c, given := expiring(t)
	ev := event("a", endpointA, "x")
	ev.AcceptedAt, ev.TTL = c.now(), time.Minute
	r.append(ev)
	l := r.lease(endpointA, 1)[0]
	c.pass(time.Hour)
	r.sweepNow()
	if len(given()) != 0 {
		t.Fatalf("given up while it was out: %v", given())
	}
	r.finish(l, Result{Attempt: attempt(l, 200), Verdict: VerdictDelivered})
	r.sweepNow()
	if v, _ := r.Get("a", false); v.State != StateDelivered || len(given()) != 0 {
		t.Errorf("%v, told: %v", v.State, given())
	}
}

// One pass holds no more than so many bytes, whatever the number of events.
func TestTTLPassesInPieces(t *testing.T) {
	c := newClock()
	var mu sync.Mutex
	var passes []int
	r := newRig(t, c.use, func(cfg *Config) {
		cfg.Expired = func(list []*Lease) {
			mu.Lock()
			defer mu.Unlock()
			passes = append(passes, len(list))
		}
	})
	for _, id := range []string{"a", "b", "c"} {
		ev := event(id, endpointA, "x")
		ev.AcceptedAt, ev.TTL = c.now(), time.Minute
		ev.Named, ev.Target = true, "/"+strings.Repeat("x", maxExpiredBytes*2/3)
		r.append(ev)
	}
	c.pass(time.Hour)
	r.sweepNow() // the committer's own sweeps may come between
	r.sweepNow()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(passes, []int{2, 1}) {
		t.Errorf("%v given up at a time, want two and then the third", passes)
	}
}
