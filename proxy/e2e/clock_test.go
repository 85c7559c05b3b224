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
			if a := p.waitState(id, "delivered", patience).Attempts; len(a) != 1 || a[0].DurationMs < 50 || a[0].DurationMs > 60_000 {
				t.Errorf("by %v: attempts %+v, want one of about 50 ms", step, a)
			}
		}
	}
	var s struct {
		Average *float64 `json:"avg_delivery_ms_last_hour"`
		Ready   bool
	}
	p.api("GET", "status", "", &s)
	if !s.Ready || s.Average != nil && (*s.Average < 50 || *s.Average > 60_000) {
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
			p := newWithClock(t, "targets: { allow_private: true }\ndefaults: { timeout: 30s, retry: { max_attempts: 10000, base_delay: 300ms, max_delay: 600ms }, "+patient+" }\n")
			p.start()
			var ids []string
			for range 10 {
				ids = append(ids, p.accept("POST", "/"+r.url("/"), "x"))
			}
			r.wait(10, patience)
			p.setClock(step, true)
			since := len(r.requests())
			r.wait(since+20, patience) // each of them twice, about
			r.setAnswer(nil)
			fresh := p.accept("POST", "/"+r.url("/"), "x")
			for _, id := range append(ids, fresh) {
				e := p.waitState(id, "delivered", patience)
				for _, a := range e.Attempts {
					if a.DurationMs < 0 || a.DurationMs > 60_000 {
						t.Errorf("an attempt took %v ms", a.DurationMs)
					}
				}
			}
			p.metricIs(0, "postern_oldest_pending_seconds")
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
			limited.wait(2, patience)
			broken.wait(1, patience)
			throttled.wait(1, patience)
			p.setClock(step, true)
			// By a clock that was not set; the wait for the next request is far less than an hour.
			departed := func(q request) (began, ended time.Time) {
				began, ended = p.departed(q)
				if ahead := began.Sub(q.At); ahead.Abs() > 30*time.Minute {
					began, ended = began.Add(-step), ended.Add(-step)
				}
				return began, ended
			}
			all := limited.wait(3, patience)
			first, _ := departed(all[0])
			if second, _ := departed(all[1]); second.Before(first) {
				first = second
			}
			if _, third := departed(all[2]); third.Sub(first) < 3*time.Second {
				t.Errorf("three requests left within %v under the limit", third.Sub(first))
			}
			for name, r := range map[string]*receiver{"the cooldown": broken, "Retry-After": throttled} {
				two := r.wait(2, patience)
				_, answered := departed(two[0])
				if next, _ := departed(two[1]); next.Sub(answered) < 1999*time.Millisecond {
					t.Errorf("%s: the next request left after %v, want two seconds", name, next.Sub(answered))
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
	isSet := make(chan struct{})
	release := sync.OnceFunc(func() { close(isSet) })
	r := newReceiver(t, func(n int, _ request) reply {
		if n > 1 {
			return reply{}
		}
		<-isSet
		return reply{Status: 503, Header: map[string]string{"Retry-After": "3"}}
	})
	t.Cleanup(release)
	p := newWithClock(t, "targets: { allow_private: true }\ndefaults: { timeout: 1m, retry: { max_attempts: 5, base_delay: 2s, max_delay: 2s } }\n")
	p.start()
	id := p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	p.setClock(time.Hour, true)
	release()
	p.departed(r.requests()[0])
	p.kill()
	p.setClock(0, false)
	p.start()
	p.waitState(id, "delivered", patience)
}
