package spool

import (
	"testing"
	"time"
)

// expiring is a spool whose clock the test owns, and the IDs that it gave up.
func expiring(t *testing.T, now *time.Time) (*rig, *[]string) {
	t.Helper()
	var given []string
	r := newRig(t, func(c *Config) {
		c.Now = func() time.Time { return *now }
		c.Expired = func(list []*Lease) {
			for _, l := range list {
				given = append(given, l.Event.ID)
			}
		}
	})
	return r, &given
}

func TestTTLPassesWithoutALease(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond).UTC()
	r, given := expiring(t, &now)
	for id, ttl := range map[string]time.Duration{"short": time.Minute, "long": time.Hour, "none": 0} {
		ev := event(id, endpointA, "x")
		ev.AcceptedAt, ev.TTL = now, ttl
		r.append(ev)
	}
	now = now.Add(2 * time.Minute)
	r.sweepNow()
	v, err := r.Get("short", false)
	if err != nil || v.State != StateDeadLetter || v.DeadReason != ReasonExpired || !v.DeadAt.Equal(now) {
		t.Errorf("short: %+v, %v", v, err)
	}
	for _, id := range []string{"long", "none"} {
		if v, _ := r.Get(id, false); v.State != StatePending {
			t.Errorf("%s is %v", id, v.State)
		}
	}
	if len(*given) != 1 || (*given)[0] != "short" {
		t.Errorf("told: %v", *given)
	}
	// A replay begins the time to live anew.
	if err := r.Retry(t.Context(), "short"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * time.Second)
	r.sweepNow()
	if v, _ := r.Get("short", false); v.State != StatePending {
		t.Errorf("after the replay: %v", v.State)
	}
	now = now.Add(time.Minute)
	r.sweepNow()
	if v, _ := r.Get("short", false); v.State != StateDeadLetter {
		t.Errorf("a minute after the replay: %v", v.State)
	}
}

// An event that is out is its holder's; what the holder says counts.
func TestTTLLeavesWhatIsOut(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond).UTC()
	r, given := expiring(t, &now)
	ev := event("a", endpointA, "x")
	ev.AcceptedAt, ev.TTL = now, time.Minute
	r.append(ev)
	l := r.lease(endpointA, 1)[0]
	now = now.Add(time.Hour)
	r.sweepNow()
	if len(*given) != 0 {
		t.Fatalf("given up while it was out: %v", *given)
	}
	r.finish(l, Result{Attempt: attempt(l, 200), Verdict: VerdictDelivered})
	r.sweepNow()
	if v, _ := r.Get("a", false); v.State != StateDelivered || len(*given) != 0 {
		t.Errorf("%v, told: %v", v.State, *given)
	}
}
