package e2e

import (
	"fmt"
	"testing"
	"time"
)

func TestLimitHoldsInAnyWindow(t *testing.T) {
	failed := map[string]bool{}
	r := newReceiver(t, func(n int, q request) reply {
		if n%5 == 0 && !failed[q.eventID()] {
			failed[q.eventID()] = true
			return status(500)
		}
		return status(200)
	})
	p := startPostern(t, fmt.Sprintf(`
defaults: { retry: { base_delay: 10ms, max_delay: 20ms } }
endpoints:
  - { name: limited, url: %q, limits: ["5/1s"] }
`, r.url("/")))
	start := time.Now()
	for range 20 {
		p.accept("POST", "/to/limited", "x")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("ingest took %v for 20 events behind a limit", took)
	}
	r.wait(12, 20*time.Second)
	p.kill()
	p.start()
	r.wait(20, 20*time.Second)
	p.settled(20 * time.Second)
	got := r.requests()
	for i := 5; i < len(got); i++ {
		if window := got[i].At.Sub(got[i-5].At); window < time.Second {
			t.Errorf("requests %d to %d came within %v", i-4, i+1, window)
		}
	}
}

func TestThrottledEndpointIsNotBroken(t *testing.T) {
	r := newReceiver(t, func(n int, _ request) reply {
		if n <= 3 {
			return reply{Status: 429, Header: map[string]string{"Retry-After": "1"}}
		}
		return status(200)
	})
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { breaker: { failure_threshold: 3, slow_failure_threshold: 3 }, retry: { base_delay: 10ms, max_delay: 20ms } }\n")
	for range 10 {
		p.accept("POST", "/"+r.url("/"), "x")
	}
	got := r.wait(13, 15*time.Second)
	for i := 1; i < 4; i++ {
		_, answered := p.departed(got[i-1])
		if began, _ := p.departed(got[i]); began.Sub(answered) < 999*time.Millisecond {
			t.Errorf("request %d left %v after a 429 that asked for a second", i+1, began.Sub(answered))
		}
	}
	if state := p.metric("postern_breaker_state"); state != 0 {
		t.Errorf("breaker state %v, want closed", state)
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
  breaker: { failure_threshold: 3, slow_failure_threshold: 3, cooldown: 1500ms, max_cooldown: 3s }
endpoints:
  - { name: partner, url: %q }
`, r.url("/")))
	for range 50 {
		p.accept("POST", "/to/partner", "x")
	}
	r.wait(3, 5*time.Second)
	var view struct {
		Breaker struct {
			State    string
			Failures int     `json:"consecutive_failures"`
			Cooldown float64 `json:"cooldown_seconds"`
		}
	}
	p.eventually(time.Second, "the breaker to open", func() bool {
		p.api("GET", "endpoints/partner", "", &view)
		return view.Breaker.State == "open"
	})
	if view.Breaker.Failures != 3 || view.Breaker.Cooldown != 1.5 {
		t.Errorf("breaker: %+v", view.Breaker)
	}
	// State, cooldown and counts survive a kill.
	p.kill()
	p.start()
	p.api("GET", "endpoints/partner", "", &view)
	if view.Breaker.State != "open" || view.Breaker.Failures != 3 {
		t.Errorf("after a kill: %+v", view.Breaker)
	}
	var list struct{ Events []event }
	p.api("GET", "events?limit=100&state=pending", "", &list)
	if len(list.Events) < 47 {
		t.Errorf("%d events were never tried, want 47 or more", len(list.Events))
	}
	p.eventually(15*time.Second, "all 50 to be delivered", func() bool { return p.metric("postern_events", `state="delivered"`) == 50 || len(r.requests()) == 53 })
	if n := len(r.requests()); n != 53 {
		t.Errorf("%d requests, want 53", n)
	}
}

// Whatever a probe ends in, the next one follows and traffic comes back.
func TestNoProbeIsLost(t *testing.T) {
	t.Parallel()
	for name, probe := range map[string]reply{
		"404":     status(404),
		"reset":   {Close: true},
		"short":   {Raw: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"},
		"timeout": {Hang: true},
		"429":     status(429),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, script(status(500), probe, status(200)))
			p := startPostern(t, `
targets: { allow_private: true }
defaults:
  timeout: 500ms
  retry: { max_attempts: 20, base_delay: 10ms, max_delay: 50ms }
  breaker: { failure_threshold: 1, slow_failure_threshold: 1, cooldown: 500ms, max_cooldown: 1s }
`)
			for range 5 {
				p.accept("POST", "/"+r.url("/"), "x")
			}
			p.eventually(10*time.Second, "traffic to be back", func() bool {
				return p.metric("postern_attempts_total", `outcome="delivered"`) >= 3
			})
		})
	}
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
	p.waitState(p.accept("POST", "/to/dead", "x"), "dead_letter", 5*time.Second)
	if state := p.metric("postern_breaker_state", `endpoint="dead"`); state != 2 {
		t.Errorf("dead: breaker state %v, want open", state)
	}
	p.waitState(p.accept("POST", "/to/alive", "x"), "delivered", 5*time.Second)
}
