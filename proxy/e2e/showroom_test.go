package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"postern/spool"
)

// showroom is a running Postern in which all is to be seen that its pages show: a day of history in which one endpoint
// grew slower, and a good, a failing, a slow and a throttling receiver that are at it now.
type showroom struct {
	*postern
	good, slow, failing, throttling, denying *receiver

	mu   sync.Mutex // guards mend
	mend bool       // the failing receiver is well again
}

// yesterday is what the history has of one endpoint: so many attempts in each half hour, that took so long.
type yesterday struct {
	endpoint string
	each     int
	took     func(hoursAgo float64) time.Duration
}

func steady(typical time.Duration) func(float64) time.Duration {
	return func(float64) time.Duration { return time.Duration(float64(typical) * (0.7 + 0.6*rand.Float64())) }
}

// slowing is steady until three hours ago.
func slowing(typical time.Duration) func(float64) time.Duration {
	even := steady(typical)
	return func(ago float64) time.Duration { return time.Duration(float64(even(ago)) * (1 + 0.9*max(0, 3-ago))) }
}

// openShowroom starts one; more is added to its configuration.
func openShowroom(t *testing.T, more string) *showroom {
	t.Helper()
	s := &showroom{good: newReceiver(t, nil)}
	s.slow = newReceiver(t, func(int, request) reply { return reply{Status: 200, After: 250 * time.Millisecond} })
	s.failing = newReceiver(t, func(int, request) reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mend {
			return status(200)
		}
		return reply{Status: 503, Body: "maintenance"}
	})
	s.throttling = newReceiver(t, func(int, request) reply { return reply{Status: 429, Header: map[string]string{"Retry-After": "300"}} })
	s.denying = newReceiver(t, script(status(401)))
	s.postern = newPostern(t, more+fmt.Sprintf(`
targets: { allow_private: true }
spool: { delivered_retention: 48h }
defaults: { timeout: 30s, retry: { max_attempts: 2, base_delay: 100ms, max_delay: 200ms }, breaker: { cooldown: 10m } }
endpoints:
  - { name: orders, url: %q, limits: ["600/1m", "20000/1h"] }
  - { name: crm-sync, url: %q }
  - { name: partner-a, url: %q, breaker: { failure_threshold: 12 }, retry: { max_attempts: 2 } }
  - { name: ledger, url: %q, limits: ["30/1m"], retry: { max_attempts: 5 } }
`, s.good.url("/in"), s.slow.url("/hook"), s.failing.url("/postback?aff=7"), s.throttling.url("/v2/events")))
	seed(t, s.dataDir(), []yesterday{
		{"orders", 12, steady(60 * time.Millisecond)}, {"crm-sync", 10, slowing(120 * time.Millisecond)},
		{"partner-a", 4, steady(180 * time.Millisecond)}, {"ledger", 3, steady(90 * time.Millisecond)},
	})
	s.start()
	return s
}

// seed writes a day of deliveries into a spool that no Postern has open.
func seed(t *testing.T, dir string, list []yesterday) {
	t.Helper()
	var mu sync.Mutex
	now, at := time.Now(), time.Time{}
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
	at = now.Add(-24 * time.Hour)
	sp, err := openSeed(dir, clock)
	if err != nil {
		t.Fatal(err)
	}
	for step, ago := range moments() {
		mu.Lock()
		at = now.Add(-ago)
		mu.Unlock()
		var wg sync.WaitGroup
		for _, y := range list {
			each := y.each
			if ago < time.Hour {
				each = rand.IntN(y.each/2 + 1)
			}
			for i := range each {
				wg.Go(func() { past(t, sp, y, fmt.Sprintf("evt_past-%s-%d-%d", y.endpoint, step, i), clock(), ago) })
			}
		}
		wg.Wait()
	}
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sp.Close(limit); err != nil {
		t.Fatal(err)
	}
}

// moments are how long ago something happened: each half hour of a day, and each minute of the last hour.
func moments() (list []time.Duration) {
	for half := 47; half >= 2; half-- {
		list = append(list, time.Duration(half)*30*time.Minute)
	}
	for minute := 59; minute >= 1; minute-- {
		list = append(list, time.Duration(minute)*time.Minute)
	}
	return list
}

func openSeed(dir string, now func() time.Time) (*spool.Spool, error) {
	cfg := spool.Defaults()
	cfg.Dir, cfg.DeliveredRetention, cfg.Now = dir, 48*time.Hour, now
	return spool.Open(cfg)
}

// past is one event that was delivered then.
func past(t *testing.T, sp *spool.Spool, y yesterday, id string, at time.Time, ago time.Duration) {
	ev := &spool.Event{ID: id, ExplicitID: true, Endpoint: y.endpoint, Named: true, Method: "POST", Body: []byte("{}"), AcceptedAt: at}
	if _, err := sp.Append(t.Context(), ev); err != nil {
		t.Error(err)
		return
	}
	leases, _, err := sp.Lease(y.endpoint, at, 1, 1<<20)
	if err != nil || len(leases) != 1 {
		t.Errorf("lease: %d, %v", len(leases), err)
		return
	}
	done := make(chan error, 1)
	took := y.took(ago.Hours())
	sp.Finish(leases[0], spool.Result{
		Attempt: &spool.Attempt{Number: 1, StartedAt: at.Add(-took), Duration: took, StatusCode: 200}, Verdict: spool.VerdictDelivered,
		Done: func(err error) { done <- err },
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// traffic sends what the receivers make their own of.
func (s *showroom) traffic() {
	s.t.Helper()
	for i := range 40 {
		s.accept("POST", "/to/orders", fmt.Sprintf(`{"order":%d}`, i))
		if i < 12 {
			s.accept("POST", "/to/crm-sync/contacts?token=SEC-QUERY", `{"name":"SEC-BODY"}`, "X-Api-Key: SEC-HEADER")
		}
		if i < 9 {
			s.accept("GET", fmt.Sprintf("/to/partner-a?cid=SEC-QUERY-%d", i), "")
		}
		if i < 6 {
			s.accept("POST", "/"+s.denying.url("/secret-path?token=SEC-QUERY"), `{}`)
			s.accept("POST", "/to/ledger", `{}`)
		}
	}
}

// dead is the ID of a dead letter of this endpoint that was attempted twice.
func (s *showroom) dead(endpoint string) (id string) {
	s.t.Helper()
	s.eventually(patience, "a dead letter of "+endpoint, func() bool {
		var page struct {
			DeadLetters []event `json:"dead_letters"`
		}
		s.api("GET", "dead-letters?endpoint="+endpoint, "", &page)
		for _, e := range page.DeadLetters {
			id = e.ID
		}
		return id != ""
	})
	return id
}
