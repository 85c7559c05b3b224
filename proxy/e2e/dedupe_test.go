package e2e

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"
)

type acceptance struct {
	ID, Endpoint, State string
	Duplicate           bool
}

func (a answer) acceptance(t *testing.T) acceptance {
	t.Helper()
	var got acceptance
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatalf("status %d: %s", a.Status, a.Body)
	}
	return got
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	for _, key := range []string{"Idempotency-Key: order-1", "Postern-Event-Id: order:1"} {
		first := p.send("POST", "/"+r.url("/a"), "body", key)
		if first.Status != 202 || first.acceptance(t).Duplicate {
			t.Fatalf("%s: first: %d %s", key, first.Status, first.Body)
		}
		again := p.send("POST", "/"+r.url("/a"), "body", key)
		if got := again.acceptance(t); again.Status != 200 || !got.Duplicate || got.ID != first.ID {
			t.Errorf("%s: again: %d %+v, want 200 with %s", key, again.Status, got, first.ID)
		}
		for what, path := range map[string]string{"other body": "/a", "other target": "/b"} {
			body := "body"
			if what == "other body" {
				body = "other"
			}
			checkProblem(t, p.send("POST", "/"+r.url(path), body, key), 422, "")
		}
		checkProblem(t, p.send("PUT", "/"+r.url("/a"), "body", key), 422, "")
	}
	p.stop(patience)
	p.start()
	if again := p.send("POST", "/"+r.url("/a"), "body", "Idempotency-Key: order-1"); again.Status != 200 {
		t.Errorf("after a restart: %d %s", again.Status, again.Body)
	}
	if n := len(r.wait(2, patience)); n != 2 {
		t.Errorf("receiver got %d requests, want 2", n)
	}
}

func TestDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for range 32 {
		wg.Go(func() {
			a, err := p.try("POST", "/"+r.url("/a"), "body", "Idempotency-Key: one")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			counts[a.Status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if counts[202] != 1 || counts[200] != 31 {
		t.Errorf("statuses %v, want one 202 and 31 times 200", counts)
	}
	r.wait(1, patience)
}

func TestEventIDOfAnotherEndpoint(t *testing.T) {
	t.Parallel()
	a, b := newReceiver(t, nil), newReceiver(t, nil)
	p := startPostern(t, calm)
	p.accept("POST", "/"+a.url("/"), "x", "Postern-Event-Id: mine")
	checkProblem(t, p.send("POST", "/"+b.url("/"), "x", "Postern-Event-Id: mine"), 422, "")
	// The same idempotency key at another endpoint is another event.
	p.accept("POST", "/"+a.url("/k"), "x", "Idempotency-Key: k")
	p.accept("POST", "/"+b.url("/k"), "x", "Idempotency-Key: k")
}

func TestWait(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(_ int, q request) reply {
		switch q.Header.Get("X-Case") {
		case "slow":
			return reply{After: 1500 * time.Millisecond}
		case "fail":
			return status(500)
		case "big":
			return reply{Body: string(make([]byte, 65<<10))}
		}
		return reply{Status: 201, Header: map[string]string{"X-From": "partner"}, Body: "made it"}
	})
	p := startPostern(t, "targets: { allow_private: true }\n")
	a := p.send("POST", "/"+r.url("/"), "x", "Prefer: wait=5")
	if a.Status != 201 || string(a.Body) != "made it" || a.Header.Get("X-From") != "partner" ||
		a.Header.Get("Preference-Applied") != "wait" || a.ID == "" {
		t.Errorf("delivered: %d %q %v", a.Status, a.Body, a.Header)
	}
	for c, prefer := range map[string]string{"slow": "wait=1", "fail": "wait=5", "big": "wait=5"} {
		a := p.send("POST", "/"+r.url("/"), "x", "Prefer: "+prefer, "X-Case: "+c)
		if a.Status != 202 || a.acceptance(t).ID == "" {
			t.Errorf("%s: %d %.80s", c, a.Status, a.Body)
		}
	}
	for _, prefer := range []string{"wait=soon", "wait=-1", "wait=1.5", "respond-async"} {
		if a := p.send("POST", "/"+r.url("/"), "x", "Prefer: "+prefer, "X-Case: slow"); a.Status != 202 {
			t.Errorf("%s: %d, want 202 at once", prefer, a.Status)
		}
	}
}

func TestDelayAndTTL(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	start := time.Now()
	p.accept("POST", "/"+r.url("/delay"), "x", "Postern-Delay: 1s")
	p.accept("POST", "/"+r.url("/at"), "x", "Postern-Not-Before: "+start.Add(time.Second).UTC().Format(time.RFC3339Nano))
	for _, q := range r.wait(2, patience) {
		if began, _ := p.departed(q); began.Before(start.Add(time.Second)) {
			t.Errorf("%s left %v early", q.Line, start.Add(time.Second).Sub(began))
		}
	}
	r.close()
	id := p.accept("POST", "/"+r.url("/ttl"), "x", "Postern-Ttl: 700ms", "Postern-Max-Attempts: 100")
	p.waitState(id, "dead_letter", patience)
	p.metricIs(1, "postern_dead_letters_total", `reason="expired"`)
}

// An endpoint that is stopped must not keep an event beyond its time to live.
func TestTTLWhilePaused(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner, url: %q }\n", r.url("/")))
	if code := p.api("POST", "endpoints/partner/pause", "", nil); code >= 300 {
		t.Fatalf("pause: %d", code)
	}
	id := p.accept("POST", "/to/partner", "x", "Postern-Ttl: 500ms")
	p.waitState(id, "dead_letter", patience)
	if n := len(r.requests()); n != 0 {
		t.Errorf("receiver got %d requests while paused", n)
	}
}
