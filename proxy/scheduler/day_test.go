package scheduler

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"testing/synctest"
	"time"

	"postern/limiter/bucket"
	"postern/spool"
)

// TestADayOfThousandsOfEndpoints: a day of virtual time, in which each of two thousand endpoints gets an event every hour or so. A tenth
// of them is down for three hours, each at its own time, a tenth is slow, and a tenth has a limit of two an hour. In the
// end everything is delivered, nothing twice; no healthy endpoint ever waited for another's trouble; no limit was exceeded.
func TestADayOfThousandsOfEndpoints(t *testing.T) {
	const endpoints, hours = 2000, 24
	name := func(i int) string { return fmt.Sprintf("https://host-%d.example", i) }
	kind := func(endpoint string) (kind, hour int) {
		h := fnv.New32a()
		h.Write([]byte(endpoint))
		return int(h.Sum32() % 10), int(h.Sum32()/10) % (hours - 4)
	}
	var begin time.Time
	answer := func(ctx context.Context, a Attempt) Outcome {
		switch k, from := kind(a.Lease.Event.Endpoint); k {
		case 0: // down for three hours
			if at := time.Since(begin) - time.Duration(from)*time.Hour; at >= 0 && at < 3*time.Hour {
				return failWith(503)(ctx, a)
			}
		case 1: // slow
			time.Sleep(5 * time.Second)
		}
		return ok(ctx, a)
	}
	limited := usual()
	limited.Limiter.Limits = []bucket.Limit{{N: 2, Per: time.Hour}}
	inBubble(t, answer, func(r *rig) {
		begin = time.Now()
		for hour := range hours {
			for i := range endpoints {
				if i > 0 && i%100 == 0 { // spread over the hour
					time.Sleep(2 * time.Minute)
				}
				r.store.add(name(i))
			}
			time.Sleep(time.Until(begin.Add(time.Duration(hour+1) * time.Hour)))
		}
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		if n := r.store.finished(); n != endpoints*hours {
			t.Errorf("%d of %d events are finished", n, endpoints*hours)
		}
		checkDay(t, r, kind, limited.Limiter.Limits[0])
	}, func(c *Config, p *policies) {
		c.Concurrency = 256
		p.common.Limiter.Breaker.FailureThreshold = 3
		p.common.Retry.MaxAttempts = 100
		for i := range endpoints {
			if k, _ := kind(name(i)); k == 2 {
				p.own[name(i)] = limited
			}
		}
	})
}

func checkDay(t *testing.T, r *rig, kind func(string) (int, int), limit bucket.Limit) {
	t.Helper()
	sends := map[string][]time.Time{}
	for _, s := range r.sender.log() {
		sends[s.endpoint] = append(sends[s.endpoint], s.at)
		k, _ := kind(s.endpoint)
		if s.number > 1 && k != 0 {
			t.Fatalf("%s is healthy, and had attempt %d", s.endpoint, s.number)
		}
	}
	for endpoint, at := range sends {
		k, _ := kind(endpoint)
		for i := limit.N; k == 2 && i < len(at); i++ {
			if window := at[i].Sub(at[i-limit.N]); window < limit.Per {
				t.Fatalf("%s got %d requests within %v", endpoint, limit.N+1, window)
			}
		}
	}
	late := 0
	for _, told := range r.ears.told {
		if told.Verdict != spool.VerdictDelivered {
			continue
		}
		k, _ := kind(told.Lease.Event.Endpoint)
		if waited := told.Outcome.Attempt.StartedAt.Sub(told.Lease.Event.AcceptedAt); k > 2 && waited > time.Second {
			late++
		}
	}
	if late > 0 {
		t.Errorf("%d events of healthy endpoints waited for more than a second", late)
	}
}
