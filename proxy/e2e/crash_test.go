package e2e

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Nothing wakes it: an event whose process was killed is delivered after the next start without new traffic, and its
// attempt numbers go on.
func TestKilledAfterTheFirstAttempt(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Status: 503, Header: map[string]string{"Retry-After": "3"}}, status(200)))
	p := startPostern(t, calm)
	id := p.accept("POST", "/"+r.url("/"), "x")
	p.departed(r.wait(1, patience)[0])
	p.kill()
	p.start()
	q := r.wait(2, patience)[1]
	if q.eventID() != id || q.Header.Get("Postern-Attempt") != "2" {
		t.Errorf("second request: event %s attempt %s, want %s attempt 2", q.eventID(), q.Header.Get("Postern-Attempt"), id)
	}
}

// SIGKILL at random moments under traffic: what got a 202 is delivered at least once, with its own ID; what was never
// acknowledged is delivered at most as often as it was sent.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	acknowledged := map[string]bool{}
	for round := range 12 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		stop, enough := make(chan struct{}), make(chan struct{})
		before, target := len(acknowledged), 1+rnd.IntN(150)
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					id := fmt.Sprintf("e-%d-%d-%d", round, w, i)
					a, err := p.try("POST", "/"+r.url("/"), "body of "+id, "Postern-Event-Id: "+id)
					if err != nil {
						return
					}
					if a.Status == 202 {
						mu.Lock()
						if acknowledged[id] = true; len(acknowledged) == before+target {
							close(enough)
						}
						mu.Unlock()
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(patience):
			t.Errorf("fewer than %d events were acknowledged in %v", target, patience)
		}
		p.kill()
		close(stop)
		wg.Wait()
		p.start()
	}
	p.eventually(patience, "every acknowledged event to arrive", func() bool {
		seen := r.byEvent()
		for id := range acknowledged {
			if seen[id] == 0 {
				return false
			}
		}
		return true
	})
	for _, q := range r.requests() {
		if want := "body of " + q.eventID(); string(q.Body) != want {
			t.Fatalf("body %q, want %q", q.Body, want)
		}
	}
	t.Logf("%d acknowledged, %d requests", len(acknowledged), len(r.requests()))
}

func TestStopWhileTheReceiverIsDown(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	p := startPostern(t, manyRetries)
	for range 50 {
		p.accept("POST", "/http://"+addr+"/", "x")
	}
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r := newReceiverOn(t, addr, nil, nil)
	p.start()
	r.wait(50, patience)
	for id, n := range r.byEvent() {
		if n != 1 {
			t.Errorf("event %s came %d times", id, n)
		}
	}
}

// A deploy: what is on its way when the signal comes is finished, and nothing is sent twice.
func TestStopWaitsForRunningAttempts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{After: 300 * time.Millisecond}))
	p := startPostern(t, calm)
	for range 20 {
		p.accept("POST", "/"+r.url("/"), "x")
	}
	r.wait(1, patience)
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.start()
	r.wait(20, patience)
	p.settled(patience)
	if n := len(r.requests()); n != 20 {
		t.Errorf("%d requests in all, want 20", n)
	}
}

// An attempt that the stop cuts is not recorded, and its number is used again.
func TestCutAttemptIsNotCharged(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Hang: true}, status(200)))
	p := startPostern(t, "shutdown_grace: 200ms\ntargets: { allow_private: true }\ndefaults: { timeout: 10m }\n")
	id := p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.start()
	if q := r.wait(2, patience)[1]; q.Header.Get("Postern-Attempt") != "1" {
		t.Errorf("attempt %s, want 1 again", q.Header.Get("Postern-Attempt"))
	}
	if e := p.waitState(id, "delivered", patience); len(e.Attempts) != 1 {
		t.Errorf("%d attempts recorded, want 1", len(e.Attempts))
	}
}

func TestShutdownDelayKeepsTheDoorOpen(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+"shutdown_delay: 8s\n")
	p.signal(15)
	p.accept("POST", "/"+r.url("/last"), "x")
	r.wait(1, patience)
	if code := p.waitExit(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
