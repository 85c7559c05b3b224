package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"postern/sync/pgtest/intime"
)

func TestLimitHoldsInAnyWindow(t *testing.T) {
	var mu sync.Mutex
	failed := map[string]bool{}
	r := newReceiver(t, func(n int, q request) reply {
		mu.Lock()
		defer mu.Unlock()
		if n%5 == 0 && !failed[q.eventID()] {
			failed[q.eventID()] = true
			return status(500)
		}
		return status(200)
	})
	p := startPostern(t, fmt.Sprintf(`
defaults: { retry: { max_attempts: 100, base_delay: 10ms, max_delay: 20ms }, `+patient+` }
endpoints:
  - { name: limited, url: %q, limits: ["5/1s"] }
  - { name: shut, url: %q, limits: ["1/1h"] }
`, r.url("/"), newReceiver(t, nil).url("/")))
	for range 20 {
		p.accept("POST", "/to/limited", "x")
	}
	intime.Since(t, 2*time.Second, "ingest of 20 events behind a limit", func() {
		for range 20 {
			p.accept("POST", "/to/shut", "x")
		}
	})
	r.wait(12, patience)
	p.kill()
	p.start()
	r.wait(20, patience)
	p.eventually(patience, "all 20 to be delivered", func() bool { return p.endpoint("limited").depth() == 0 })
	checkWindows(t, p.departures(r.requests()), 5, time.Second)
}

// departure is when a request left at the earliest and at the latest.
type departure struct{ earliest, latest time.Time }

// departures are those of requests, by the latest: between the begin and the end of an attempt by its record, and before
// the receiver had read it. One whose record a kill took left in the second that it says of itself, or later.
func (p *postern) departures(requests []request) (all []departure) {
	p.t.Helper()
	for _, q := range requests {
		d := departure{latest: q.At}
		if began, ended, known := p.recorded(q); !known || began.After(q.At) { // the number was used again
			second, _ := strconv.ParseInt(q.Header.Get("X-Delivery-Timestamp"), 10, 64)
			d.earliest = time.Unix(second, 0)
		} else if d.earliest = began; ended.Before(q.At) {
			d.latest = ended
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b departure) int { return a.latest.Compare(b.latest) })
	return all
}

// checkWindows fails the test where more than limit requests left within a window for certain, however late anybody was.
func checkWindows(t *testing.T, all []departure, limit int, window time.Duration) {
	t.Helper()
	for i := limit; i < len(all); i++ {
		first := slices.MinFunc(all[i-limit:i+1], func(a, b departure) int { return a.earliest.Compare(b.earliest) })
		if span := all[i].latest.Sub(first.earliest); span < window {
			t.Errorf("requests %d to %d left within %v", i-limit+1, i+1, span)
		}
	}
}

// 429 throttles and does not break: at most one request a second until the first other answer. What leaves before the
// first 429 is known has nothing to heed, so that one event goes ahead.
func TestThrottledEndpointIsNotBroken(t *testing.T) {
	r := newReceiver(t, func(n int, _ request) reply {
		if n <= 5 {
			return reply{Status: 429, Header: map[string]string{"Retry-After": "1"}}
		}
		return status(200)
	})
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { breaker: { failure_threshold: 3, slow_failure_threshold: 3 }, retry: { max_attempts: 10, base_delay: 10ms, max_delay: 20ms } }\n")
	first := p.accept("POST", "/"+r.url("/"), "x")
	p.departed(r.wait(1, patience)[0])
	for range 9 {
		p.accept("POST", "/"+r.url("/"), "x")
	}
	got := r.wait(15, patience)
	for i := 1; i < 6; i++ {
		_, answered := p.departed(got[i-1])
		if began, _ := p.departed(got[i]); began.Sub(answered) < 999*time.Millisecond {
			t.Errorf("request %d left %v after a 429 that asked for a second", i+1, began.Sub(answered))
		}
	}
	p.settled(patience)
	if v := p.endpoint(p.waitState(first, "delivered", patience).Endpoint); v.Breaker.State != "closed" || v.Breaker.OpenedAt != nil {
		t.Errorf("breaker %+v, want closed", v.Breaker)
	}
	p.metricIs(10, "postern_attempts_total", `outcome="delivered"`)
	if n := len(r.requests()); n != 15 {
		t.Errorf("%d requests, want 15", n)
	}
}

func TestBreakerChargesNobodyWhileOpen(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(n int, _ request) reply {
		if n <= 3 {
			return status(500)
		}
		return status(200)
	})
	p := startPostern(t, fmt.Sprintf(`
defaults:
  concurrency: 1
  retry: { base_delay: 50ms, max_delay: 100ms }
  breaker: { failure_threshold: 3, slow_failure_threshold: 3, cooldown: 1h, max_cooldown: 2h }
endpoints:
  - { name: partner, url: %q }
`, r.url("/")))
	for range 50 {
		p.accept("POST", "/to/partner", "x")
	}
	p.eventually(patience, "the breaker to open", func() bool { return p.endpoint("partner").Breaker.State == "open" })
	check := func(when string) {
		t.Helper()
		if v := p.endpoint("partner"); v.Breaker.State != "open" || v.Breaker.Failures != 3 || v.Breaker.Cooldown != 3600 || v.Queue.Pending < 47 || v.Queue.Pending+v.Queue.Waiting != 50 {
			t.Errorf("%s: %+v, want 50 waiting events, 47 or more of them never tried", when, v)
		}
		if n := len(r.requests()); n != 3 {
			t.Errorf("%s: %d requests, want 3", when, n)
		}
	}
	check("open")
	// State, cooldown and counts survive a kill.
	p.kill()
	p.start()
	check("after a kill")
	if code := p.api("POST", "endpoints/partner/reset", "", nil); code >= 300 {
		t.Fatalf("reset: status %d", code)
	}
	p.settled(patience)
	p.metricIs(50, "postern_attempts_total", `outcome="delivered"`)
	if n := len(r.requests()); n != 53 {
		t.Errorf("%d requests, want 53", n)
	}
}

// Whatever a probe ends in, the next one follows and traffic comes back.
func TestNoProbeIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		probe   reply
		timeout time.Duration
	}{
		"404":     {status(404), time.Minute},
		"reset":   {reply{Close: true}, time.Minute},
		"short":   {reply{Raw: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"}, time.Minute},
		"timeout": {reply{Hang: true}, 500 * time.Millisecond},
		"429":     {status(429), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, nil)
			p := startPostern(t, fmt.Sprintf(`
targets: { allow_private: true }
defaults:
  timeout: %v
  retry: { max_attempts: 100, base_delay: 10ms, max_delay: 50ms }
  breaker: { failure_threshold: 1, slow_failure_threshold: 1, cooldown: 500ms, max_cooldown: 1s }
`, c.timeout))
			intime.Hold(t, 2*time.Second, "two cooldowns at most: the next request after the probe", func() time.Duration {
				return p.untilNextProbe(r, c.probe)
			})
		})
	}
}

// untilNextProbe opens the breaker, has the probe answered so, and returns how long after that the next request left, by
// Postern's own records. All that was accepted is done then.
func (p *postern) untilNextProbe(r *receiver, probe reply) time.Duration {
	p.t.Helper()
	before := len(r.requests())
	answer := script(status(500), probe, status(200))
	r.setAnswer(func(n int, q request) reply { return answer(n-before, q) })
	p.accept("POST", "/"+r.url("/"), "x")
	p.departed(r.wait(before+1, patience)[before]) // the breaker is open: nothing that comes now is sent with the first one
	for range 4 {
		p.accept("POST", "/"+r.url("/"), "x")
	}
	got := r.wait(before+3, patience)[before:]
	_, ended := p.departed(got[1])
	next, _ := p.departed(got[2])
	p.settled(patience)
	return next.Sub(ended)
}

func TestNeighboursOnOneHost(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(_ int, q request) reply {
		if q.Line == "POST /dead HTTP/1.1" {
			return status(500)
		}
		return status(200)
	})
	p := startPostern(t, fmt.Sprintf(`
targets: { allow_private: true }
defaults: { retry: { max_attempts: 2, base_delay: 1ms, max_delay: 1ms }, breaker: { failure_threshold: 2, slow_failure_threshold: 2 } }
endpoints:
  - { name: dead, url: %q }
  - { name: alive, url: %q }
`, r.url("/dead"), r.url("/alive")))
	p.waitState(p.accept("POST", "/to/dead", "x"), "dead_letter", patience)
	p.metricIs(2, "postern_breaker_state", `endpoint="dead"`)
	p.waitState(p.accept("POST", "/to/alive", "x"), "delivered", patience)
}
