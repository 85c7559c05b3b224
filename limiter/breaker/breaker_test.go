package breaker

import (
	"testing"
	"time"
)

var config = Config{
	FailureThreshold: 3, Cooldown: 5 * time.Minute, MaxCooldown: time.Hour,
	SlowP95: 5 * time.Second, SlowFailureThreshold: 2,
}

// bench drives a breaker through virtual time.
type bench struct {
	t *testing.T
	Breaker
	now time.Time
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, Breaker: New(config), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (b *bench) after(d time.Duration) { b.now = b.now.Add(d) }

// begin takes a ticket and fails the test if none is to be had.
func (b *bench) begin() Ticket {
	b.t.Helper()
	if until, ok := b.Ask(b.now); !ok {
		b.t.Fatalf("refused until %v (state %v)", until, b.State(b.now))
	}
	return b.Take(b.now)
}

func (b *bench) try(r Result) bool {
	b.t.Helper()
	return b.Report(b.begin(), r, b.now)
}

func (b *bench) tries(results ...Result) {
	b.t.Helper()
	for _, r := range results {
		b.try(r)
	}
}

// is checks the state, the failures counted and the cooldown in force.
func (b *bench) is(s State, failures int, cooldown time.Duration) {
	b.t.Helper()
	if got := b.State(b.now); got != s || b.Failures() != failures || b.Breaker.Cooldown() != cooldown {
		b.t.Fatalf("state %v, %d failures, cooldown %v; want %v, %d, %v", got, b.Failures(), b.Breaker.Cooldown(), s, failures, cooldown)
	}
}

func TestClosedCountsConsecutiveFailures(t *testing.T) {
	const m = 5 * time.Minute
	for name, c := range map[string]struct {
		results  []Result
		state    State
		failures int
	}{
		"nothing happened":          {nil, Closed, 0},
		"below the threshold":       {[]Result{Failure, Failure}, Closed, 2},
		"at the threshold":          {[]Result{Failure, Failure, Failure}, Open, 3},
		"a success clears":          {[]Result{Failure, Failure, Success, Failure}, Closed, 1},
		"another answer clears":     {[]Result{Failure, Failure, Cleared, Failure, Failure}, Closed, 2},
		"an undecided one does not": {[]Result{Failure, Undecided, Failure, Undecided, Failure}, Open, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.tries(c.results...)
			b.is(c.state, c.failures, m)
			if c.state == Open && !b.OpenedAt().Equal(b.now) {
				t.Errorf("opened at %v, want %v", b.OpenedAt(), b.now)
			}
		})
	}
}

func TestOpenRefusesUntilTheCooldownIsOver(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	end := b.now.Add(5 * time.Minute)
	b.after(5*time.Minute - 1)
	if until, ok := b.Ask(b.now); ok || !until.Equal(end) {
		t.Fatalf("one nanosecond early: ok %v, until %v; want %v", ok, until, end)
	}
	b.after(1)
	b.is(HalfOpen, 3, 5*time.Minute)
	probe := b.begin()
	if !probe.Probe {
		t.Fatal("the first attempt after the cooldown is no probe")
	}
	for range 3 {
		if until, ok := b.Ask(b.now); ok || !until.IsZero() {
			t.Fatalf("beside a probe: ok %v, until %v; want to wait for its result", ok, until)
		}
		b.after(time.Hour)
	}
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		probes   []Result // the last one decides
		state    State
		failures int
		cooldown time.Duration
		slots    int
	}{
		"success closes":            {[]Result{Success}, Closed, 0, 5 * time.Minute, 1},
		"another 4xx closes":        {[]Result{Cleared}, Closed, 0, 5 * time.Minute, 1},
		"failure doubles":           {[]Result{Failure}, Open, 4, 10 * time.Minute, 32},
		"undecided probes again":    {[]Result{Undecided, Undecided, Undecided}, HalfOpen, 3, 5 * time.Minute, 32},
		"undecided, then a success": {[]Result{Undecided, Success}, Closed, 0, 5 * time.Minute, 1},
		"undecided, then a failure": {[]Result{Undecided, Failure}, Open, 4, 10 * time.Minute, 32},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.tries(Failure, Failure, Failure)
			b.after(5 * time.Minute)
			for _, r := range c.probes {
				b.try(r)
			}
			b.is(c.state, c.failures, c.cooldown)
			if got := b.Slots(32); got != c.slots {
				t.Errorf("%d slots, want %d", got, c.slots)
			}
		})
	}
}

func TestCooldownDoublesUpToTheMaximumAndStartsAnew(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	for _, m := range []time.Duration{5, 10, 20, 40, 60, 60, 60} {
		b.is(Open, b.Failures(), m*time.Minute)
		b.after(m*time.Minute - 1)
		if _, ok := b.Ask(b.now); ok {
			t.Fatalf("allowed before %d minutes were over", m)
		}
		b.after(1)
		b.try(Failure)
	}
	b.after(time.Hour)
	b.try(Success)
	b.is(Closed, 0, 5*time.Minute)
}

func TestCooldownNeverOverflows(t *testing.T) {
	c := Config{Cooldown: 1, MaxCooldown: 1<<63 - 1}
	last := time.Duration(0)
	for n := range 200 {
		d := c.cooldown(n)
		if d < last || d > c.MaxCooldown {
			t.Fatalf("after %d failed probes: %v, after one less: %v", n, d, last)
		}
		last = d
	}
	if last != c.MaxCooldown {
		t.Errorf("it ends at %v", last)
	}
}

func TestResultsOfAnEarlierEraMoveNothing(t *testing.T) {
	b := newBench(t)
	early := []Ticket{b.begin(), b.begin(), b.begin(), b.begin(), b.begin(), b.begin()}
	for _, ticket := range early[:3] {
		b.Report(ticket, Failure, b.now)
	}
	b.is(Open, 3, 5*time.Minute)
	if b.Report(early[3], Success, b.now) {
		t.Error("a late success changed an open breaker")
	}
	b.is(Open, 3, 5*time.Minute)

	b.after(5 * time.Minute)
	probe := b.begin()
	b.Report(early[4], Failure, b.now)
	b.is(HalfOpen, 3, 5*time.Minute)
	if _, ok := b.Ask(b.now); ok {
		t.Fatal("a late failure let a second probe out")
	}
	b.Report(probe, Success, b.now)
	b.Report(early[5], Failure, b.now)
	b.is(Closed, 0, 5*time.Minute)
}

func TestConcurrencyGrowsFromOneWithEachSuccess(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	b.after(5 * time.Minute)
	b.try(Success)
	for want := 1; want < 4; want++ {
		if got := b.Slots(4); got != want {
			t.Fatalf("%d slots, want %d", got, want)
		}
		b.tries(Cleared, Undecided) // neither is a success
		if changed := b.try(Success); !changed {
			t.Error("growth is not worth storing")
		}
		b.EndGrowth(4)
	}
	if got := b.Slots(4); got != 4 {
		t.Fatalf("%d slots, want 4", got)
	}
	if b.try(Success) {
		t.Error("a success after the growth still changes something")
	}
	if got := b.Slots(100); got != 100 {
		t.Errorf("after the growth there are %d slots of 100", got)
	}
}

func TestSlowThreshold(t *testing.T) {
	for name, c := range map[string]struct {
		p95     time.Duration
		samples int
		want    int
	}{
		"fast":              {time.Second, 100, 3},
		"exactly slow_p95":  {5 * time.Second, 100, 3},
		"slow":              {5*time.Second + 1, 20, 2},
		"slow, few samples": {time.Minute, 19, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.SetLatency(c.p95, c.samples)
			if b.Threshold() != c.want {
				t.Fatalf("threshold %d, want %d", b.Threshold(), c.want)
			}
			for range c.want {
				b.is(Closed, b.Failures(), 5*time.Minute)
				b.try(Failure)
			}
			b.is(Open, c.want, 5*time.Minute)
		})
	}
	t.Run("never higher", func(t *testing.T) {
		b := New(Config{FailureThreshold: 3, SlowP95: 1, SlowFailureThreshold: 9})
		b.SetLatency(2, 20)
		if b.Threshold() != 3 {
			t.Errorf("threshold %d, want 3", b.Threshold())
		}
	})
	t.Run("off", func(t *testing.T) {
		b := New(Config{FailureThreshold: 3, SlowFailureThreshold: 1})
		b.SetLatency(time.Hour, 1000)
		if b.Threshold() != 3 {
			t.Errorf("threshold %d, want 3", b.Threshold())
		}
	})
}

func TestAThresholdThatFallsOpensAtTheNextFailure(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure)
	b.SetLatency(time.Minute, 20)
	b.is(Closed, 2, 5*time.Minute)
	patient := config
	patient.SlowP95 = time.Hour
	b.SetConfig(patient) // the reload finds it fast enough
	if b.Threshold() != 3 {
		t.Errorf("threshold %d after the reload, want 3", b.Threshold())
	}
	b.SetConfig(config)
	b.try(Failure)
	b.is(Open, 3, 5*time.Minute)
}

func TestReset(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	b.after(5 * time.Minute)
	b.try(Failure)
	b.after(10 * time.Minute)
	probe := b.begin()
	b.Reset()
	b.is(Closed, 0, 5*time.Minute)
	if b.Slots(32) != 1 || !b.OpenedAt().IsZero() {
		t.Errorf("%d slots, opened at %v", b.Slots(32), b.OpenedAt())
	}
	if b.Report(probe, Failure, b.now); b.State(b.now) != Closed || b.Failures() != 0 {
		t.Error("the probe from before moved the breaker that was reset")
	}

	b = newBench(t)
	b.tries(Failure)
	b.Reset()
	b.is(Closed, 0, 5*time.Minute)
	if b.Slots(32) != 32 {
		t.Error("resetting a closed breaker throttled a healthy endpoint")
	}
}

func TestReloadTakesEffectOnACooldownUnderWay(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	shorter := config
	shorter.Cooldown = time.Minute
	b.SetConfig(shorter)
	b.is(Open, 3, time.Minute)
	b.after(time.Minute)
	if !b.begin().Probe {
		t.Error("no probe after the new cooldown")
	}
}
