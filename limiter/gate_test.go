package limiter

import (
	"strings"
	"testing"
	"time"

	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func policy(limits ...bucket.Limit) Policy {
	return Policy{
		Concurrency: 4,
		Limits:      limits,
		Burst:       1,
		Breaker: breaker.Config{
			FailureThreshold: 3, Cooldown: 5 * time.Minute, MaxCooldown: time.Hour,
			SlowP95: 5 * time.Second, SlowFailureThreshold: 2,
		},
	}
}

// bench drives a gate through virtual time, as a scheduler would.
type bench struct {
	t *testing.T
	*Gate
	now  time.Time
	disk []byte
	open int // permits not reported
}

func newBench(t *testing.T, p Policy) *bench {
	return &bench{t: t, Gate: New(p, start), now: start}
}

func (b *bench) after(d time.Duration) { b.now = b.now.Add(d) }

// reserve stores a state with n more sends.
func (b *bench) reserve(n int) {
	b.disk = b.Reserve(n, b.now)
	b.Reserved(n, b.now)
}

// take takes a permit, reserving if need be, and fails the test if there is none.
func (b *bench) take() Permit {
	b.t.Helper()
	d := b.Ask(b.now, b.open)
	if d.Reserve > 0 {
		b.reserve(d.Reserve)
	}
	p, ok := b.Take(b.now, b.open)
	if !ok {
		b.t.Fatalf("refused: %+v", b.Ask(b.now, b.open))
	}
	b.open++
	return p
}

func (b *bench) end(p Permit, k Kind) bool {
	b.open--
	return b.Report(p, Outcome{Kind: k}, b.now)
}

// throttled ends a permit with a 429.
func (b *bench) throttled(p Permit, wait time.Duration) {
	b.open--
	b.Report(p, Outcome{Kind: Throttled, Wait: wait}, b.now)
}

// tries makes one attempt after the other, each in no time.
func (b *bench) tries(kinds ...Kind) {
	b.t.Helper()
	for _, k := range kinds {
		b.end(b.take(), k)
	}
}

// refused checks that nothing may leave, why, and for how long, up to the rounding of the spacing; a negative wait
// stands for one that time does not end.
func (b *bench) refused(why Reason, wait time.Duration) {
	b.t.Helper()
	d := b.Ask(b.now, b.open)
	got := time.Duration(-1)
	if !d.At.IsZero() {
		got = d.At.Sub(b.now)
	}
	if d.Allow || d.Reason != why || (got < 0) != (wait < 0) || (got-wait).Abs() > 2*time.Microsecond {
		b.t.Fatalf("allow %v, reason %q, wait %v; want %q, %v", d.Allow, d.Reason, got, why, wait)
	}
	if _, ok := b.Take(b.now, b.open); ok {
		b.t.Fatal("Take gave what Ask refused")
	}
}

// restart stores the state and restores it under the same policy.
func (b *bench) restart() {
	b.t.Helper()
	b.kill(b.State())
}

func (b *bench) kill(disk []byte) {
	b.t.Helper()
	g, err := Restore(b.policy, disk, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Gate, b.open = g, 0
}

func TestPause(t *testing.T) {
	b := newBench(t, policy())
	b.Pause("410 Gone", b.now)
	b.refused(ReasonPaused, -1)
	b.restart()
	b.after(1000 * time.Hour)
	b.refused(ReasonPaused, -1)
	if s := b.Snapshot(b.now); !s.Paused || s.PauseReason != "410 Gone" || !s.PausedAt.Equal(start) {
		t.Errorf("%+v", s)
	}
	b.Reset(b.now)
	b.refused(ReasonPaused, -1)
	b.Resume(b.now)
	b.tries(Success)
}

func TestALongReasonIsCutBetweenCharacters(t *testing.T) {
	b := newBench(t, policy())
	b.Pause(strings.Repeat("x", 199)+"é", b.now)
	b.restart()
	if got := b.Snapshot(b.now).PauseReason; got != strings.Repeat("x", 199) {
		t.Errorf("%q", got)
	}
}

func TestConcurrency(t *testing.T) {
	b := newBench(t, policy())
	permits := []Permit{b.take(), b.take(), b.take(), b.take()}
	b.refused(ReasonConcurrency, -1)
	if d := b.Ask(b.now, 0); d.Allow {
		t.Error("a caller that miscounts gets more than the gate knows to be out")
	}
	b.end(permits[0], Success)
	b.take()
	b.refused(ReasonConcurrency, -1)
}

func TestBreaker(t *testing.T) {
	b := newBench(t, policy())
	b.tries(Failure, Failure, Cleared, Failure, Neutral, Failure, Throttled, Failure)
	b.refused(ReasonBreakerOpen, 5*time.Minute)
	b.after(5 * time.Minute)
	probe := b.take()
	if !probe.Probe() {
		t.Fatal("no probe")
	}
	b.refused(ReasonProbing, -1)
	b.end(probe, Failure)
	b.refused(ReasonBreakerOpen, 10*time.Minute)
	b.restart()
	b.refused(ReasonBreakerOpen, 10*time.Minute)
	b.after(10 * time.Minute)
	b.end(b.take(), Neutral) // cut by a shutdown
	probe = b.take()
	b.end(probe, Success)

	for want := 1; want <= 4; want++ {
		if s := b.Snapshot(b.now); s.Concurrency != want || s.Breaker != breaker.Closed {
			t.Fatalf("%v with concurrency %d, want %d", s.Breaker, s.Concurrency, want)
		}
		b.restart()
		var permits []Permit
		for range want {
			permits = append(permits, b.take())
		}
		b.refused(ReasonConcurrency, -1)
		b.end(permits[0], Success)
		for _, p := range permits[1:] {
			b.end(p, Neutral)
		}
	}
}

func TestSlowEndpointOpensSooner(t *testing.T) {
	b := newBench(t, policy())
	b.SetLatency(6*time.Second, 20)
	b.tries(Failure, Failure)
	b.refused(ReasonBreakerOpen, 5*time.Minute)
	if s := b.Snapshot(b.now); s.Threshold != 2 || s.ConsecutiveFailures != 2 {
		t.Errorf("%+v", s)
	}
}

func TestThrottledProbeIsFollowedByTheNextAfterItsWait(t *testing.T) {
	b := newBench(t, policy())
	b.tries(Failure, Failure, Failure)
	b.after(5 * time.Minute)
	b.throttled(b.take(), 30*time.Second)
	b.refused(ReasonThrottled, 30*time.Second)
	if s := b.Snapshot(b.now); s.Breaker != breaker.HalfOpen || s.ConsecutiveFailures != 3 || s.Cooldown != 5*time.Minute {
		t.Errorf("%+v", s)
	}
	b.after(30 * time.Second)
	b.tries(Success)
	b.tries(Success)
}

func TestReset(t *testing.T) {
	b := newBench(t, policy())
	b.tries(Failure, Failure, Failure)
	b.after(5 * time.Minute)
	probe := b.take()
	b.Reset(b.now)
	if b.Report(probe, Outcome{Kind: Failure}, b.now); b.Snapshot(b.now).ConsecutiveFailures != 0 {
		t.Error("the probe of before counts after the reset")
	}
	b.open = 0
	b.take()
	b.refused(ReasonConcurrency, -1) // it grows from one
}

func TestChangedTellsWhatIsWorthStoring(t *testing.T) {
	b := newBench(t, policy())
	for i, c := range []struct {
		kind Kind
		want bool
	}{
		{Success, false}, {Neutral, false}, {Cleared, false},
		{Failure, true}, {Neutral, false}, {Success, true}, {Success, false},
		{Throttled, true}, {Neutral, false}, {Success, true}, {Success, false},
	} {
		if got := b.end(b.take(), c.kind); got != c.want {
			t.Errorf("step %d, kind %d: changed %v, want %v", i, c.kind, got, c.want)
		}
	}
}

func TestAPermitCountsOnce(t *testing.T) {
	b := newBench(t, policy())
	p := b.take()
	b.end(p, Failure)
	for range 5 {
		if b.Report(p, Outcome{Kind: Failure}, b.now) {
			t.Fatal("the second report changed something")
		}
		b.Left(p, b.now)
	}
	if b.Report(Permit{}, Outcome{Kind: Throttled, Wait: time.Hour}, b.now) {
		t.Error("a permit that was never given changed something")
	}
	if s := b.Snapshot(b.now); s.ConsecutiveFailures != 1 || s.Throttled {
		t.Errorf("%+v", s)
	}
}

func TestSetPolicy(t *testing.T) {
	p := policy(bucket.Limit{N: 2, Per: time.Minute})
	p.Burst = 2
	b := newBench(t, p)
	b.tries(Failure, Failure)
	p = policy(bucket.Limit{N: 3, Per: time.Minute})
	p.Burst = 3
	p.Breaker.FailureThreshold = 1
	b.SetPolicy(p, b.now)
	s := b.Snapshot(b.now)
	if s.Limits[0].Used != 2 || s.ConsecutiveFailures != 2 || s.Threshold != 1 || s.Reason != ReasonRateLimited {
		t.Errorf("%+v", s)
	}
}

func TestPolicyValidate(t *testing.T) {
	if err := policy(bucket.Limit{N: 5, Per: time.Second}).Validate(); err != nil {
		t.Error(err)
	}
	err := Policy{Limits: []bucket.Limit{{N: 0, Per: time.Second}}}.Validate()
	for _, want := range []string{"concurrency is 0", "limit 0/1s lets nothing through", "breaker: failure_threshold is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
