package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/sync/pgtest/intime"
)

// A client that waits for the first attempt gets its answer while Postern stops, if the attempt ends within the grace, and
// else its 202, since the event is on disk.
func TestWaitingClientsAtStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer reply
		grace  time.Duration
		status int
		state  string // after the next start, with the attempt recorded or its number used again
	}{
		"the attempt ends":  {reply{After: 500 * time.Millisecond}, 10 * time.Minute, 200, "delivered"},
		"the attempt hangs": {reply{Hang: true}, time.Second, 202, "in_flight"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, script(c.answer))
			p := startPostern(t, fmt.Sprintf("shutdown_grace: %v\ntargets: { allow_private: true }\ndefaults: { timeout: 10m }\n", c.grace))
			got := make(chan answer, 1)
			go func() {
				a, err := p.try("POST", "/"+r.url("/"), "x", "Prefer: wait=30")
				if err != nil {
					t.Error(err)
				}
				got <- a
			}()
			r.wait(1, patience)
			if code := p.stop(patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
			a := <-got
			if a.Status != c.status || a.ID == "" || (a.Header.Get("Preference-Applied") == "wait") != (c.status == 200) {
				t.Errorf("status %d: %s, want %d", a.Status, a.Body, c.status)
			}
			p.start()
			p.waitState(a.ID, c.state, patience)
			for _, q := range r.requests() {
				if q.Header.Get("Postern-Attempt") != "1" {
					t.Errorf("attempt %s", q.Header.Get("Postern-Attempt"))
				}
			}
		})
	}
}

// A second signal ends it at once, and loses nothing that was accepted.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Hang: true}, status(200)))
	p := startPostern(t, "shutdown_grace: 10m\ntargets: { allow_private: true }\ndefaults: { timeout: 10m }\n")
	id := p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	p.signal(syscall.SIGTERM)
	p.eventually(patience, "the stop to begin", func() bool { return strings.Contains(p.log.String(), "postern is stopping") })
	// What comes within a second of the first one is its repetition (`timeout` signals the process and then its group).
	p.eventually(patience, "a second signal to end it", func() bool {
		p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		select {
		case <-p.exited:
			return true
		default:
			return false
		}
	})
	if code := p.waitExit(patience); code == 0 {
		t.Error("exit code 0, though nothing was finished")
	}
	p.start()
	r.wait(2, patience)
	p.waitState(id, "delivered", patience)
}

// What waits for a time far away holds no stop up: a long Retry-After, a delayed event, an open breaker, a limit.
func TestStopIsPrompt(t *testing.T) {
	t.Parallel()
	later := newReceiver(t, script(reply{Status: 429, Header: map[string]string{"Retry-After": "3600"}}))
	broken := newReceiver(t, script(status(500)))
	p := startPostern(t, fmt.Sprintf(`
targets: { allow_private: true }
defaults: { retry: { base_delay: 10ms, max_delay: 20ms }, breaker: { failure_threshold: 1, slow_failure_threshold: 1, cooldown: 1h, max_cooldown: 1h } }
endpoints:
  - { name: limited, url: %q, limits: ["1/1h"] }
`, later.url("/limited")))
	for range 5 {
		p.accept("POST", "/"+later.url("/"), "x")
		p.accept("POST", "/"+broken.url("/"), "x")
		p.accept("POST", "/to/limited", "x")
		p.accept("POST", "/"+broken.url("/"), "x", "Postern-Delay: 24h")
	}
	later.wait(2, patience)
	broken.wait(1, patience)
	stopped := false
	intime.Hold(t, 3*time.Second, "a stop with nothing on its way", func() time.Duration {
		if stopped {
			p.start()
		}
		stopped = true
		start := time.Now()
		if code := p.stop(patience); code != 0 {
			t.Errorf("exit code %d", code)
		}
		return time.Since(start)
	})
}

// What is on its way is given the grace, and no more than that.
func TestStopEndsWithTheGrace(t *testing.T) {
	t.Parallel()
	const grace = time.Second
	r := newReceiver(t, script(reply{Hang: true}))
	p := startPostern(t, fmt.Sprintf("shutdown_grace: %v\ntargets: { allow_private: true }\ndefaults: { timeout: 10m }\n", grace))
	id := p.accept("POST", "/"+r.url("/"), "x")
	tries := 0
	intime.Hold(t, grace+3*time.Second, "a stop with an attempt that hangs", func() time.Duration {
		tries++
		r.wait(tries, patience)
		start := time.Now()
		if code := p.stop(patience); code != 0 {
			t.Errorf("exit code %d", code)
		}
		took := time.Since(start)
		if took < grace {
			t.Errorf("it ended after %v", took)
		}
		p.start() // the attempt is made again
		return took
	})
	r.wait(tries+1, patience)
	p.waitState(id, "in_flight", patience)
}

// While it stops, ingest refuses with a reason, readiness is off, and status can still be asked.
func TestRefusalsWhileStopping(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReceiver(t, func(int, request) reply {
		<-release
		return reply{}
	})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	p := startPostern(t, "targets: { allow_private: true }\n")
	id := p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	p.signal(syscall.SIGTERM)
	p.eventually(patience, "readiness to be off", func() bool { return p.probe("/readyz") == 503 })
	if alive := p.probe("/healthz"); alive != 200 {
		t.Errorf("/healthz %d while stopping", alive)
	}
	a, err := p.try("POST", "/"+r.url("/"), "x")
	if err == nil {
		checkProblem(t, a, http.StatusServiceUnavailable, "stopping")
		if a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	var e event
	if code := p.api("GET", "events/"+id, "", &e); code != 200 || e.State != "in_flight" {
		t.Errorf("while stopping: status %d, %+v", code, e)
	}
}

// Stopped and reloaded under load: what was accepted is delivered once, and the spool is whole.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	accepted := map[string]bool{}
	for round := range 3 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		enough := make(chan struct{})
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("s-%d-%d-%d", round, w, i)
					a, err := p.try("POST", "/"+r.url("/"), "x", "Postern-Event-Id: "+id)
					if err != nil || a.Status == 503 {
						return // the door is closed
					}
					if a.Status != 202 {
						t.Errorf("status %d: %s", a.Status, a.Body)
						return
					}
					mu.Lock()
					accepted[id] = true
					if len(accepted) == 300*(round+1) {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		for range 3 {
			p.reload()
		}
		if code := p.stop(patience); code != 0 {
			t.Errorf("exit code %d", code)
		}
		wg.Wait()
		p.typed(0, "spool check --data "+p.dataDir(), "whole")
		p.start()
	}
	p.settled(patience)
	oncePerEvent(t, r, accepted)
}

// A configuration file that was cut off, is missing for a moment or cannot be read again takes nothing out of force, and a
// reload that is refused stands in nobody's way.
func TestReloadOfAFileThatWasCutOff(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(200)))
	named := calm + "endpoints: [{ name: a, url: \"" + r.url("/") + "\" }]\n"
	p := startPostern(t, named)
	path := filepath.Join(p.dir, "postern.yaml")
	for what, spoil := range map[string]func() error{
		"empty":       func() error { return os.Truncate(path, 0) },
		"one comment": func() error { return os.WriteFile(path, []byte("# endpoints:\n"), 0o600) },
		"missing":     func() error { return os.Remove(path) },
		"a pipe":      func() error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		before := strings.Count(p.log.String(), "the running configuration stays in force")
		p.reload()
		if strings.Count(p.log.String(), "the running configuration stays in force") == before {
			t.Errorf("%s: the reload was not refused: %s", what, p.log.String())
		}
		p.gauges(map[string]float64{"postern_config_last_reload_successful": 0})
		p.waitState(p.accept("POST", "/to/a", what), "delivered", patience)
		os.Remove(path)
		p.configure(named)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.reload()
	p.gauges(map[string]float64{"postern_config_last_reload_successful": 1})
	if a := p.send("POST", "/to/a", "x"); a.Status != 404 {
		t.Errorf("after {} the endpoint is still there: status %d", a.Status)
	}
}

// What only a restart can change is named by the reload, and the rest takes effect.
func TestReloadNamesWhatNeedsARestart(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500)))
	p := startPostern(t, calm)
	p.configure(strings.Replace(calm, "max_attempts: 5", "max_attempts: 2", 1) + "spool: { max_bytes: 64MiB }\nlog: { level: debug }\n")
	p.reload()
	if log := p.log.String(); !strings.Contains(log, "spool.max_bytes") {
		t.Error("the log does not name spool.max_bytes")
	}
	if e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "dead_letter", patience); len(e.Attempts) != 2 {
		t.Errorf("%d attempts under the new policy, want 2", len(e.Attempts))
	}
}
