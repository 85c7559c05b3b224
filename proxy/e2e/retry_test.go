package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { base_delay: 20ms, max_delay: 50ms, max_retry_after: 3s } }\n")
	// What is heeded ends at the limit, a little later on a busy machine; what is not would lead to the limit if it were.
	const limit, heeded = 3*time.Second - time.Millisecond, 30 * time.Second
	const imf, rfc850 = "Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT"
	for name, c := range map[string]struct {
		value    string
		ahead    time.Duration // where value is empty: the date that lies so far ahead
		layout   string
		from, to time.Duration
	}{
		"seconds":       {"2", 0, "", 1900 * time.Millisecond, heeded},
		"IMF date":      {"", 3 * time.Second, imf, 1900 * time.Millisecond, heeded},
		"RFC 850 date":  {"", 3 * time.Second, rfc850, 1900 * time.Millisecond, heeded},
		"over the cap":  {"3600", 0, "", limit, heeded},
		"huge":          {"999999999999", 0, "", limit, heeded},
		"a year ahead":  {"", 365 * 24 * time.Hour, imf, limit, heeded},
		"a past date":   {"", -time.Hour, imf, 0, limit},
		"negative":      {"-5", 0, "", 0, limit},
		"fractional":    {"7.5", 0, "", 0, limit},
		"not a number":  {"abc", 0, "", 0, limit},
		"empty":         {"", 0, "", 0, limit},
		"hexadecimal":   {"0x7", 0, "", 0, limit},
		"with a sign":   {"+7", 0, "", 0, limit},
		"two in a line": {"7, 8", 0, "", 0, limit},
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
	// The receiver notes each request before it answers the one, and the next delay begins after the answer: gaps are the
	// delays at least. The sum of 100 delays, each uniform in [0, 5 ms], is 250 ms with a standard deviation of 14.
	got := r.requests()
	for i := 104; i < len(got); i++ {
		if span := got[i].At.Sub(got[i-100].At); span < 165*time.Millisecond {
			t.Fatalf("requests %d to %d came within %v: the delays are near zero", i-99, i+1, span)
		}
	}
	if len(e.Attempts) != 21 || e.Attempts[0].Number != 1 || e.Attempts[1].Number != 181 {
		t.Errorf("the first and the last 20 attempts are kept: got %d", len(e.Attempts))
	}
}

func TestConfigurationReachesWaitingEvents(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	wrong := newReceiver(t, script(status(500)))
	const conf = manyRetries + "endpoints:\n  - { name: partner, url: %q }\n"
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
