package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest/intime"
)

// retry.statuses overrides the transient ones, both ways; headers of the application override within bounds.
func TestRetryStatuses(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(_ int, q request) reply {
		code := 500
		fmt.Sscanf(q.Line, "POST /%d", &code)
		return status(code)
	})
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: own, url: %q, retry: { max_attempts: 2, statuses: [404, 503] } }\n", r.url("/")))
	for code, want := range map[int]int{404: 2, 503: 2, 500: 1, 429: 1, 400: 1} {
		e := p.waitState(p.accept("POST", fmt.Sprintf("/to/own/%d", code), "x"), "dead_letter", patience)
		if len(e.Attempts) != want {
			t.Errorf("%d: %d attempts, want %d", code, len(e.Attempts), want)
		}
	}
}

func TestTimeoutOfAnEvent(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Hang: true}))
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { timeout: 300ms, retry: { max_attempts: 1 } }\n")
	intime.Hold(t, 650*time.Millisecond, "an attempt with a timeout of 300 ms", func() time.Duration {
		e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "dead_letter", patience)
		if e.Attempts[0].Error != "timeout" || e.Attempts[0].DurationMs < 290 {
			t.Errorf("%+v, want timeout after 300 ms", e.Attempts)
		}
		return time.Duration(e.Attempts[0].DurationMs * float64(time.Millisecond))
	})
	r.setAnswer(script(reply{After: 700 * time.Millisecond}))
	p.waitState(p.accept("POST", "/"+r.url("/"), "x", "Postern-Timeout: 60s"), "delivered", patience)
}

// 410 ends an event at once; without a name there is nobody to resume the endpoint, and it is not paused.
func TestGoneAdHoc(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(410), status(200)))
	p := startPostern(t, calm)
	if e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "dead_letter", patience); e.DeadReason != "gone" || len(e.Attempts) != 1 {
		t.Errorf("%+v", e)
	}
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
}

// An endpoint whose answers are slow has the lower threshold.
func TestSlowEndpointOpensSooner(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(n int, _ request) reply {
		if n > 20 {
			return reply{Status: 500, After: 60 * time.Millisecond}
		}
		return reply{After: 60 * time.Millisecond}
	})
	p := startPostern(t, fmt.Sprintf("defaults: { retry: { max_attempts: 90, base_delay: 100ms, max_delay: 200ms }, breaker: { failure_threshold: 50, slow_p95: 40ms, slow_failure_threshold: 3, cooldown: 1h, max_cooldown: 1h } }\nendpoints:\n  - { name: slow, url: %q }\n", r.url("/")))
	for range 20 {
		p.waitState(p.accept("POST", "/to/slow", "x"), "delivered", patience)
	}
	p.eventually(patience, "20 samples", func() bool { return p.endpoint("slow").Samples == 20 })
	if v := p.endpoint("slow"); v.P95 == nil || *v.P95 < 50 {
		t.Fatalf("latencies: %+v", v)
	}
	p.accept("POST", "/to/slow", "x")
	p.eventually(patience, "the breaker to open", func() bool { return p.endpoint("slow").Breaker.State == "open" })
	if n := p.endpoint("slow").Breaker.Failures; n < 3 || n >= 50 { // the p95 is taken anew once a second
		t.Errorf("open after %d failures, the slow threshold is 3", n)
	}
}

// While half open there is one probe at a time, also when many events wait and the probe hangs; a failed one doubles the
// cooldown; a stop during a probe does not lose it.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500), reply{Hang: true}, status(500), reply{Hang: true}, status(200)))
	p := startPostern(t, fmt.Sprintf("shutdown_grace: 100ms\ndefaults: { timeout: 2s, retry: { max_attempts: 50, base_delay: 1ms, max_delay: 2ms }, breaker: { failure_threshold: 1, slow_failure_threshold: 1, cooldown: 300ms, max_cooldown: 1h } }\nendpoints:\n  - { name: partner, url: %q }\n", r.url("/")))
	p.accept("POST", "/to/partner", "x")
	p.eventually(patience, "the breaker to open", func() bool { return p.endpoint("partner").Breaker.State != "closed" })
	for range 20 {
		p.accept("POST", "/to/partner", "x")
	}
	got := r.wait(3, patience)
	for i, least := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond} { // the second cooldown is twice the first
		_, failed := p.departed(got[i])
		if began, _ := p.departed(got[i+1]); began.Sub(failed) < least-time.Millisecond {
			t.Errorf("probe %d came %v after the failure before it, the cooldown is %v", i+1, began.Sub(failed), least)
		}
	}
	r.wait(4, patience) // the third one hangs: stop now
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := len(r.requests()); n != 4 {
		t.Errorf("%d requests while half open, want one at a time", n)
	}
	p.start()
	p.settled(patience)
	if v := p.endpoint("partner"); v.Breaker.State != "closed" || v.Breaker.Cooldown != 0.3 {
		t.Errorf("afterwards: %+v", v.Breaker)
	}
}

// A blank around a configured URL is refused by name; the newline at the end of a secret file never reaches the wire.
func TestStrayBlanksInTheConfiguration(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := newPostern(t, "")
	if err := os.WriteFile(filepath.Join(p.dir, "key"), []byte("secret-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := calm + "endpoints:\n  - { name: a, url: %q, headers: { set: { X-Api-Key: \"file:key\" } } }\n"
	p.configure(fmt.Sprintf(conf, r.url("/in?a=1")+" "))
	if code, text := failing(t, p, patience); code != 2 || !strings.Contains(text, "endpoints[0].url") || !strings.Contains(text, "blank") {
		t.Errorf("exit code %d: %s", code, text)
	}
	p.configure(fmt.Sprintf(conf, r.url("/in?a=1")))
	p.start()
	p.accept("POST", "/to/a", "x")
	q := r.wait(1, patience)[0]
	if q.Line != "POST /in?a=1 HTTP/1.1" || !strings.Contains(string(q.Raw)+"\r\n", "X-Api-Key: secret-from-file\r\n") {
		t.Errorf("sent: %q", q.Raw)
	}
}

// At the default level deliveries leave no line each in the log.
func TestNoLogLinePerDelivery(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	before := strings.Count(p.log.String(), "\n")
	for range 100 {
		p.accept("GET", "/"+r.url("/x?foo=bar;moo&cid=1"), "")
	}
	p.settled(patience)
	if lines := strings.Count(p.log.String(), "\n") - before; lines > 5 {
		t.Errorf("%d lines for 100 deliveries", lines)
	}
}

// --dev: private targets, short delays, readable logs, without any configuration.
func TestDev(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500), status(200)))
	p := newPostern(t, "")
	p.options = []string{"--dev"}
	p.start()
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	if strings.HasPrefix(p.log.String(), "{") {
		t.Errorf("the log is not for reading: %.200s", p.log.String())
	}
}
