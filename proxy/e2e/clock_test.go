package e2e

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/proxy/stage"
)

// withClock builds a postern whose wall clock can be set, once.
var withClock = sync.OnceValues(func() (string, error) { return stage.BuildWithClock(filepath.Dir(binary)) })

// newWithClock prepares a Postern whose clock can be set.
func newWithClock(t *testing.T, config string) *postern {
	t.Helper()
	program, err := withClock()
	if err != nil {
		t.Fatal(err)
	}
	p := newPostern(t, config)
	p.binary, p.env = program, []string{stage.ClockEnv + "=" + filepath.Join(p.dir, "clock")}
	return p
}

// setClock lets the process's clock, running or started next, differ by this much from the real one.
func (p *postern) setClock(step time.Duration, running bool) {
	p.t.Helper()
	file := filepath.Join(p.dir, "clock")
	if err := stage.SetClock(file, step); err != nil {
		p.t.Fatal(err)
	}
	if !running {
		return
	}
	p.signal(syscall.SIGUSR1)
	p.eventually(patience, "the clock to be set", func() bool { return stage.ClockIsSet(file) })
}

// setBy are the steps that a running Postern must not mind.
var setBy = []time.Duration{time.Hour, -time.Hour}

// New events go out at once, whichever way the clock was set, and back again; and no attempt takes an hour, or less than
// nothing.
func TestClockIsSetAndNewEventsGoOut(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{After: 50 * time.Millisecond}))
	p := newWithClock(t, calm)
	p.start()
	for _, step := range []time.Duration{time.Hour, 0, -time.Hour, 0, -24 * time.Hour} {
		id := p.accept("POST", "/"+r.url("/"), "on its way while the clock is set")
		p.setClock(step, true)
		for _, id := range []string{id, p.accept("POST", "/"+r.url("/"), "after it")} {
			if a := p.waitState(id, "delivered", patience).Attempts; len(a) != 1 || a[0].DurationMs < 50 || a[0].DurationMs > 5000 {
				t.Errorf("by %v: attempts %+v, want one of about 50 ms", step, a)
			}
		}
	}
	var s struct {
		Average *float64 `json:"avg_delivery_ms_last_hour"`
		Ready   bool
	}
	p.api("GET", "status", "", &s)
	if !s.Ready || s.Average != nil && (*s.Average < 50 || *s.Average > 5000) {
		t.Errorf("status: %+v", s)
	}
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.setClock(0, false)
	p.start()
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
}

// A clock that is set by an hour while events wait for their retries: they are retried as if nothing had happened, and
// no number turns negative or into an hour.
func TestClockIsSetWhileRunning(t *testing.T) {
	t.Parallel()
	for _, step := range setBy {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, script(status(500)))
			p := newWithClock(t, "targets: { allow_private: true }\ndefaults: { timeout: 1s, retry: { max_attempts: 50, base_delay: 300ms, max_delay: 600ms }, "+patient+" }\n")
			p.start()
			var ids []string
			for range 10 {
				ids = append(ids, p.accept("POST", "/"+r.url("/"), "x"))
			}
			r.wait(10, patience)
			p.setClock(step, true)
			since := len(r.requests())
			r.wait(since+20, patience) // each of them twice, about
			start := time.Now()
			r.setAnswer(nil)
			fresh := p.accept("POST", "/"+r.url("/"), "x")
			for _, id := range append(ids, fresh) {
				e := p.waitState(id, "delivered", patience)
				for _, a := range e.Attempts {
					if a.DurationMs < 0 || a.DurationMs > 5000 {
						t.Errorf("an attempt took %v ms", a.DurationMs)
					}
				}
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("delivered after %v", took)
			}
			if oldest := p.metric("postern_oldest_pending_seconds"); oldest != 0 {
				t.Errorf("postern_oldest_pending_seconds %v with nothing pending", oldest)
			}
			if age := p.metric("postern_delivery_age_seconds_sum"); age < 0 || age > 11*3700 {
				t.Errorf("postern_delivery_age_seconds sums to %v", age)
			}
			if code := p.stop(patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// What is measured by the monotonic clock is not moved by the wall clock: a limit's windows, a breaker's cooldown, a
// throttled endpoint's wait, a delay.
func TestClockDoesNotMoveWaits(t *testing.T) {
	t.Parallel()
	for _, step := range setBy {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			limited, broken := newReceiver(t, nil), newReceiver(t, script(status(500), status(200)))
			throttled := newReceiver(t, script(reply{Status: 429, Header: map[string]string{"Retry-After": "2"}}, status(200)))
			p := newWithClock(t, fmt.Sprintf(`
targets: { allow_private: true }
defaults: { retry: { base_delay: 1ms, max_delay: 1ms }, breaker: { failure_threshold: 1, slow_failure_threshold: 1, cooldown: 2s, max_cooldown: 2s } }
endpoints:
  - { name: limited, url: %q, limits: ["2/3s"], burst: 2 }
`, limited.url("/")))
			p.start()
			for range 4 {
				p.accept("POST", "/to/limited", "x")
			}
			p.accept("POST", "/"+broken.url("/"), "x")
			p.accept("POST", "/"+throttled.url("/"), "x")
			first := []request{limited.wait(2, patience)[0], broken.wait(1, patience)[0], throttled.wait(1, patience)[0]}
			p.setClock(step, true)
			for i, c := range []struct {
				name  string
				r     *receiver
				n     int
				least time.Duration
			}{{"the limit", limited, 3, 2900 * time.Millisecond}, {"the cooldown", broken, 2, 1900 * time.Millisecond}, {"Retry-After", throttled, 2, 1900 * time.Millisecond}} {
				gap := c.r.wait(c.n, patience)[c.n-1].At.Sub(first[i].At)
				if gap < c.least || gap > c.least+5*time.Second {
					t.Errorf("%s: the next request came after %v, want about %v", c.name, gap, c.least)
				}
			}
		})
	}
}

// A clock that was set between two runs: the events are still there, and those that were due go out.
func TestClockIsSetBetweenRuns(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{-time.Hour, time.Hour, 25 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			addr := freeAddr(t)
			p := newWithClock(t, downForNow)
			p.start()
			for range 5 {
				p.accept("POST", "/http://"+addr+"/", "x", "Idempotency-Key: "+fmt.Sprint(p.waiting()))
			}
			p.eventually(patience, "a first attempt", func() bool { return p.metric("postern_attempts_total") > 0 })
			p.kill()
			p.setClock(step, false)
			r := newReceiverOn(t, addr, nil, nil)
			p.start()
			r.wait(5, patience)
			p.settled(patience)
			p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
		})
	}
}

// A clock that jumped ahead while an attempt was under way, and is right again after a kill: what the attempt's end planned
// by the wrong clock is brought forward.
func TestClockIsSetDuringAnAttempt(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Status: 500, After: 500 * time.Millisecond}, status(200)))
	p := newWithClock(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 5, base_delay: 2s, max_delay: 2s } }\n")
	p.start()
	id := p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	p.setClock(time.Hour, true)
	p.eventually(patience, "the attempt to be recorded", func() bool {
		var e event
		p.api("GET", "events/"+id, "", &e)
		return len(e.Attempts) == 1
	})
	p.kill()
	p.setClock(0, false)
	p.start()
	p.waitState(id, "delivered", patience)
}
