package breaker

import (
	"strings"
	"testing"
	"time"
)

func TestMemorySurvives(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	b.after(5 * time.Minute)
	b.try(Failure)
	b.after(10 * time.Minute)
	b.begin() // its process is killed

	b.Breaker = Restore(config, b.Memory(), b.now)
	b.is(HalfOpen, 4, 10*time.Minute)
	if !b.begin().Probe {
		t.Fatal("the lost probe is not followed by another")
	}

	b = newBench(t)
	b.tries(Failure, Failure)
	b.Breaker = Restore(config, b.Memory(), b.now)
	b.try(Failure)
	b.is(Open, 3, 5*time.Minute)
	opened := b.now
	b.after(time.Minute)
	b.Breaker = Restore(config, b.Memory(), b.now)
	if until, ok := b.Ask(b.now); ok || !until.Equal(opened.Add(5*time.Minute)) {
		t.Errorf("after a restart: ok %v until %v", ok, until)
	}
}

func TestAnOpeningInTheFutureCountsFromNow(t *testing.T) {
	b := newBench(t)
	b.tries(Failure, Failure, Failure)
	b.after(-24 * time.Hour) // the clock was set back
	b.Breaker = Restore(config, b.Memory(), b.now)
	if until, ok := b.Ask(b.now); ok || until.Sub(b.now) != 5*time.Minute {
		t.Errorf("ok %v, open for %v", ok, until.Sub(b.now))
	}
}

func TestRestoreOfNonsenseIsUsable(t *testing.T) {
	b := newBench(t)
	b.Breaker = Restore(config, Memory{State: 200, Failures: -5, FailedProbes: -1, Slots: -7}, b.now)
	if !b.begin().Probe {
		t.Error("an opening long ago is not followed by a probe")
	}
}

func TestWords(t *testing.T) {
	for s, want := range map[State]string{Closed: "closed", HalfOpen: "half_open", Open: "open", 9: "unknown"} {
		if s.String() != want {
			t.Errorf("%d is %q, want %q", s, s, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"good":                       {func(*Config) {}, ""},
		"slow off":                   {func(c *Config) { c.SlowP95, c.SlowFailureThreshold = 0, 0 }, ""},
		"no threshold":               {func(c *Config) { c.FailureThreshold = 0 }, "failure_threshold is 0"},
		"no cooldown":                {func(c *Config) { c.Cooldown = 0 }, "cooldown is 0s"},
		"maximum below the cooldown": {func(c *Config) { c.MaxCooldown = time.Second }, "max_cooldown is 1s: it must be at least the cooldown, 5m0s"},
		"negative p95":               {func(c *Config) { c.SlowP95 = -1 }, "slow_p95"},
		"no slow threshold":          {func(c *Config) { c.SlowFailureThreshold = 0 }, "slow_failure_threshold is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := config
			c.change(&broken)
			err := broken.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
