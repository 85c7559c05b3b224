package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/sync/pgtest/intime"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	other := newReceiver(t, nil)
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { timeout: 1m, retry: { max_attempts: 2, base_delay: 1ms, max_delay: 1ms } }\n")
	for _, c := range []struct {
		answer   reply
		state    string
		attempts int
		class    string
	}{
		{status(200), "delivered", 1, ""},
		{status(201), "delivered", 1, ""},
		{status(202), "delivered", 1, ""},
		{status(204), "delivered", 1, ""},
		{status(206), "delivered", 1, ""},
		{reply{Status: 301, Header: map[string]string{"Location": other.url("/")}}, "dead_letter", 1, "redirect"},
		{reply{Status: 302, Header: map[string]string{"Location": "/elsewhere"}}, "dead_letter", 1, "redirect"},
		{reply{Status: 303, Header: map[string]string{"Location": other.url("/")}}, "dead_letter", 1, "redirect"},
		{reply{Status: 307, Header: map[string]string{"Location": other.url("/")}}, "dead_letter", 1, "redirect"},
		{reply{Status: 308, Header: map[string]string{"Location": other.url("/")}}, "dead_letter", 1, "redirect"},
		{status(302), "dead_letter", 1, "redirect"},
		{status(304), "dead_letter", 1, "redirect"},
		{status(400), "dead_letter", 1, "http_400"},
		{status(401), "dead_letter", 1, "http_401"},
		{status(404), "dead_letter", 1, "http_404"},
		{status(410), "dead_letter", 1, "http_410"},
		{status(418), "dead_letter", 1, "http_418"},
		{status(408), "dead_letter", 2, "http_408"},
		{status(425), "dead_letter", 2, "http_425"},
		{status(429), "dead_letter", 2, "http_429"},
		{status(500), "dead_letter", 2, "http_500"},
		{status(503), "dead_letter", 2, "http_503"},
		{reply{Close: true}, "dead_letter", 2, "connection"},
		{reply{Raw: "HTTP/1.1 200 OK\r\nContent-Le"}, "dead_letter", 2, "connection"},
		{reply{Raw: "SSH-2.0-x\r\n"}, "dead_letter", 2, "connection"},
		{reply{Hang: true}, "dead_letter", 2, "timeout"},
		{reply{Raw: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"}, "delivered", 1, ""},
	} {
		t.Run(fmt.Sprintf("%d%.20q%v", c.answer.Status, c.answer.Raw, c.answer.Hang), func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, script(c.answer))
			headers := []string{}
			if c.answer.Hang {
				headers = append(headers, "Postern-Timeout: 1s")
			}
			id := p.accept("POST", "/"+r.url("/first"), "body", headers...)
			e := p.waitState(id, c.state, patience)
			if len(e.Attempts) != c.attempts {
				t.Fatalf("%d attempts, want %d: %+v", len(e.Attempts), c.attempts, e.Attempts)
			}
			if got := e.Attempts[len(e.Attempts)-1].Error; got != c.class {
				t.Errorf("class %q, want %q", got, c.class)
			}
			if got := len(r.requests()); got != c.attempts {
				t.Errorf("%d requests seen, want %d", got, c.attempts)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(other.requests()); n != 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	})
}

func TestNetworkFailures(t *testing.T) {
	t.Parallel()
	p := startPostern(t, manyRetries)
	addr := freeAddr(t)
	id := p.accept("POST", "/http://"+addr+"/later", "x")
	p.eventually(patience, "a first failed attempt", func() bool {
		var e event
		p.api("GET", "events/"+id, "", &e)
		return len(e.Attempts) > 0 && e.Attempts[0].Error == "connect"
	})
	r := newReceiverOn(t, addr, nil, nil)
	r.wait(1, patience)
	p.waitState(id, "delivered", patience)

	id = p.accept("POST", "/http://no-such-host.invalid/", "x", "Postern-Max-Attempts: 1")
	if e := p.waitState(id, "dead_letter", patience); e.Attempts[0].Error != "dns" {
		t.Errorf("class %q, want dns", e.Attempts[0].Error)
	}
	id = p.accept("POST", "/https://"+r.addr()+"/", "x", "Postern-Max-Attempts: 1")
	if e := p.waitState(id, "dead_letter", patience); e.Attempts[0].Error != "tls" {
		t.Errorf("class %q, want tls", e.Attempts[0].Error)
	}
}

// net/http sends a request again by itself when a kept-alive connection breaks. Each request must be an attempt.
func TestNoSilentSecondSend(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	perConn := map[int]int{}
	r := newReceiver(t, func(_ int, q request) reply {
		mu.Lock()
		defer mu.Unlock()
		perConn[q.Conn]++
		return reply{Close: perConn[q.Conn] > 1}
	})
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { concurrency: 1, retry: { base_delay: 1ms, max_delay: 2ms } }\n")
	var ids []string
	for i := range 8 {
		method, headers := "GET", []string{}
		if i >= 4 {
			method, headers = "POST", []string{fmt.Sprintf("Idempotency-Key: k%d", i)}
		}
		ids = append(ids, p.accept(method, "/"+r.url("/"), "", headers...))
	}
	attempts := 0
	for _, id := range ids {
		attempts += len(p.waitState(id, "delivered", patience).Attempts)
	}
	if seen := len(r.requests()); seen != attempts {
		t.Errorf("receiver saw %d requests, %d attempts are recorded", seen, attempts)
	}
}

func TestBodyRules(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte("1"))
	w.Close()
	wants := newReceiver(t, script(reply{Body: "returned HTTP error 429"}, reply{Body: "1"}))
	gz := newReceiver(t, script(reply{Body: zipped.String(), Header: map[string]string{"Content-Encoding": "gzip"}}))
	rejects := newReceiver(t, script(reply{Body: `{"status": "error"}`}, reply{Body: `{"status":"ok"}`}))
	free := newReceiver(t, script(reply{Body: `{"status":"error"}`}))
	p := startPostern(t, calm+fmt.Sprintf(`endpoints:
  - { name: wants, url: %q, success: { body_matches: '^1$' } }
  - { name: gz, url: %q, success: { body_matches: '^1$' } }
  - { name: rejects, url: %q, success: { body_rejects: '"status":\s*"error"' } }
`, wants.url("/"), gz.url("/"), rejects.url("/")))
	for path, attempts := range map[string]int{"/to/wants": 2, "/to/gz": 1, "/to/rejects": 2, "/" + free.url("/"): 1} {
		e := p.waitState(p.accept("POST", path, "x"), "delivered", patience)
		if len(e.Attempts) != attempts || attempts == 2 && e.Attempts[0].Error != "body_rule" {
			t.Errorf("%s: %+v, want %d attempts", path, e.Attempts, attempts)
		}
	}
}

func TestGonePausesANamedEndpoint(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(410), status(200)))
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner, url: %q }\n", r.url("/")))
	p.waitState(p.accept("POST", "/to/partner", "1"), "dead_letter", patience)
	id := p.accept("POST", "/to/partner", "2")
	p.stop(patience)
	p.start()
	var view struct{ Paused bool }
	p.api("GET", "endpoints/partner", "", &view)
	if !view.Paused {
		t.Error("the pause did not survive a restart")
	}
	p.waitState(id, "pending", patience)
	p.api("POST", "endpoints/partner/resume", "", nil)
	p.waitState(id, "delivered", patience)
}

func TestSlowEndpointTakesNothingFromOthers(t *testing.T) {
	hanging, healthy := newReceiver(t, script(reply{Hang: true})), newReceiver(t, nil)
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { timeout: 10m, concurrency: 16 }\n")
	flood(t, p, 2000, "/"+hanging.url("/"))
	intime.Hold(t, 2*time.Second, "20 deliveries beside it", func() time.Duration {
		start, before := time.Now(), len(healthy.requests())
		flood(t, p, 20, "/"+healthy.url("/"))
		var last time.Time
		for _, q := range healthy.wait(before+20, patience)[before:] {
			if _, ended := p.departed(q); ended.After(last) {
				last = ended
			}
		}
		return last.Sub(start)
	})
	if most := hanging.mostOpen(); most > 16 {
		t.Errorf("%d connections to the hanging endpoint, its concurrency is 16", most)
	}
}

// flood accepts n events over 16 connections.
func flood(t *testing.T, p *postern, n int, path string) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				if a, err := p.try("POST", path, fmt.Sprintf("event %d", i)); err != nil || a.Status != 202 {
					t.Errorf("event %d: %v %d", i, err, a.Status)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestManyHangingEndpointsLeaveRoom(t *testing.T) {
	healthy := newReceiver(t, nil)
	p := startPostern(t, "targets: { allow_private: true }\nconcurrency: 64\ndefaults: { timeout: 10m, concurrency: 32 }\n")
	for i := range 12 {
		hanging := newReceiver(t, script(reply{Hang: true}))
		flood(t, p, 40, "/"+hanging.url("/"))
		if i == 0 {
			hanging.wait(16, patience) // it is given more and more slots: there is time for that
		}
		hanging.wait(1, patience)
	}
	for range 20 {
		p.accept("POST", "/"+healthy.url("/"), "x")
	}
	healthy.wait(20, patience) // before one of the others' attempts has ended
}

func TestSocketsStayWithinConcurrency(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(int, request) reply { return reply{Status: 503, Body: strings.Repeat("x", 8<<10)} })
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { concurrency: 8, retry: { base_delay: 1ms, max_delay: 5ms }, breaker: { failure_threshold: 100000, slow_failure_threshold: 100000 } }\n")
	flood(t, p, 200, "/"+r.url("/"))
	r.wait(1000, patience)
	if most := r.mostOpen(); most > 8 {
		t.Errorf("%d sockets at once, want 8 at most", most)
	}
	p.eventually(patience, "200 dead letters", func() bool { return p.metric("postern_events", `state="dead_letter"`) == 200 })
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if len(fds) > 50 {
		t.Errorf("%d open file descriptors", len(fds))
	}
}

// A receiver that closes idle connections just when the next request comes: each event is delivered once, and the
// breaker does not take it for a fault.
func TestStaleKeepAlive(t *testing.T) {
	const idle = 20 * time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := closingReceiver(t, ln, idle)
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { base_delay: 10ms, max_delay: 50ms } }\n")
	tick := time.NewTicker(idle)
	defer tick.Stop()
	for range 200 {
		<-tick.C
		p.accept("POST", "/http://"+ln.Addr().String()+"/", "x")
	}
	p.eventually(patience, "200 deliveries", func() bool {
		return p.metric("postern_attempts_total", `outcome="delivered"`) == 200
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) != 200 {
		t.Errorf("%d events came, want 200", len(r.seen))
	}
	for id, n := range r.seen {
		if n != 1 {
			t.Errorf("event %s came %d times", id, n)
		}
	}
	if state := p.metric("postern_breaker_state"); state != 0 {
		t.Errorf("breaker state %v, want closed", state)
	}
}
