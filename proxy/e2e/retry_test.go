package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { base_delay: 20ms, max_delay: 50ms, max_retry_after: 2s } }\n")
	const imf, rfc850 = "Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT"
	for name, c := range map[string]struct {
		value    string
		ahead    time.Duration // where value is empty: the date that lies so far ahead
		layout   string
		from, to time.Duration
	}{
		"seconds":       {"2", 0, "", 1900 * time.Millisecond, 4 * time.Second},
		"IMF date":      {"", 3 * time.Second, imf, 1900 * time.Millisecond, 4 * time.Second},
		"RFC 850 date":  {"", 3 * time.Second, rfc850, 1900 * time.Millisecond, 4 * time.Second},
		"over the cap":  {"3600", 0, "", 1900 * time.Millisecond, 4 * time.Second},
		"huge":          {"999999999999", 0, "", 1900 * time.Millisecond, 4 * time.Second},
		"a year ahead":  {"", 365 * 24 * time.Hour, imf, 1900 * time.Millisecond, 4 * time.Second},
		"a past date":   {"", -time.Hour, imf, 0, time.Second},
		"negative":      {"-5", 0, "", 0, time.Second},
		"fractional":    {"1.5", 0, "", 0, time.Second},
		"not a number":  {"abc", 0, "", 0, time.Second},
		"empty":         {"", 0, "", 0, time.Second},
		"hexadecimal":   {"0x2", 0, "", 0, time.Second},
		"with a sign":   {"+2", 0, "", 0, time.Second},
		"two in a line": {"2, 3", 0, "", 0, time.Second},
	} {
		for _, code := range []int{429, 503} {
			t.Run(fmt.Sprintf("%s on %d", name, code), func(t *testing.T) {
				t.Parallel()
				r := newReceiver(t, func(n int, _ request) reply {
					value := c.value
					if c.layout != "" {
						value = time.Now().Add(c.ahead).UTC().Format(c.layout)
					}
					if n == 1 {
						return reply{Status: code, Header: map[string]string{"Retry-After": value}}
					}
					return status(200)
				})
				p.accept("POST", "/"+r.url("/"), "x")
				got := r.wait(2, patience)
				first, _ := p.departed(got[0])
				second, _ := p.departed(got[1])
				if gap := second.Sub(first); gap < c.from || gap > c.to {
					t.Errorf("second request after %v, want %v to %v", gap, c.from, c.to)
				}
			})
		}
	}
}

func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500)))
	named := newReceiver(t, script(status(500)))
	p := startPostern(t, `
targets: { allow_private: true }
defaults: { retry: { max_attempts: 3, base_delay: 10ms, max_delay: 20ms } }
endpoints:
  - { name: scheduled, url: "`+named.url("/")+`", retry: { schedule: [10ms, 20ms] } }
  - { name: once, url: "`+named.url("/once")+`", retry: { schedule: [] } }
`)
	for path, want := range map[string]int{"/" + r.url("/"): 3, "/to/scheduled": 3, "/to/once": 1} {
		if e := p.waitState(p.accept("POST", path, "x"), "dead_letter", patience); len(e.Attempts) != want {
			t.Errorf("%s: %d attempts, want %d", path, len(e.Attempts), want)
		}
	}
	id := p.accept("POST", "/"+r.url("/"), "x", "Postern-Max-Attempts: 1")
	if e := p.waitState(id, "dead_letter", patience); len(e.Attempts) != 1 {
		t.Errorf("override: %d attempts, want 1", len(e.Attempts))
	}
}

func TestManyAttempts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500)))
	p := startPostern(t, `
targets: { allow_private: true }
defaults:
  retry: { max_attempts: 200, base_delay: 1ms, max_delay: 5ms }
  breaker: { failure_threshold: 1000, slow_failure_threshold: 1000 }
`)
	e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "dead_letter", patience)
	if n := len(r.requests()); n != 200 {
		t.Errorf("%d requests, want 200", n)
	}
	if len(e.Attempts) != 21 || e.Attempts[0].Number != 1 || e.Attempts[1].Number != 181 {
		t.Errorf("the first and the last 20 attempts are kept: got %d", len(e.Attempts))
	}
}

func TestConfigurationReachesWaitingEvents(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	wrong := newReceiver(t, script(status(500)))
	const conf = calm + "endpoints:\n  - { name: partner, url: %q }\n"
	p := startPostern(t, fmt.Sprintf(conf, wrong.url("/old?a=1")))
	id := p.accept("POST", "/to/partner/x?c=2", "x")
	wrong.wait(1, patience)
	p.configure(fmt.Sprintf(conf, r.url("/new/?b=1")))
	p.reload()
	if got := r.wait(1, patience)[0].Line; got != "POST /new/x?b=1&c=2 HTTP/1.1" {
		t.Errorf("request line %q", got)
	}
	p.waitState(id, "delivered", patience)

	// An endpoint that leaves the configuration keeps its events, and goes on when it returns.
	p.api("POST", "endpoints/partner/pause", "", nil)
	id = p.accept("POST", "/to/partner/later", "x")
	p.configure(calm)
	p.reload()
	if a := p.send("POST", "/to/partner", "x"); a.Status != 404 {
		t.Errorf("an endpoint that left: status %d, want 404", a.Status)
	}
	p.waitState(id, "pending", patience)
	p.configure(fmt.Sprintf(conf, r.url("/new/?b=1")))
	p.reload()
	p.api("POST", "endpoints/partner/resume", "", nil)
	p.waitState(id, "delivered", patience)

	// A bad file leaves the running configuration in force.
	p.configure("defaultz: {}\n")
	p.reload()
	p.waitState(p.accept("POST", "/to/partner", "x"), "delivered", patience)
	if log := p.log.String(); !strings.Contains(log, "postern.yaml:3") || !strings.Contains(log, "defaultz") {
		t.Errorf("the log does not say where the bad file is bad")
	}
}
