package retry_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"postern/proxy/retry"
)

// top draws the largest number that is allowed, bottom the smallest.
func top(n int64) int64  { return n - 1 }
func bottom(int64) int64 { return 0 }

func TestDelayBounds(t *testing.T) {
	exponential := retry.Policy{MaxAttempts: 5, BaseDelay: 30 * time.Second, MaxDelay: time.Hour}
	schedule := retry.Policy{Schedule: []time.Duration{5 * time.Second, 5 * time.Minute}, HasSchedule: true}
	empty := retry.Policy{HasSchedule: true, BaseDelay: time.Second, MaxDelay: 3 * time.Second}
	huge := retry.Policy{BaseDelay: math.MaxInt64 / 2, MaxDelay: math.MaxInt64}
	for _, c := range []struct {
		name   string
		policy retry.Policy
		n      int
		want   time.Duration
	}{
		{"first", exponential, 1, 30 * time.Second},
		{"doubles", exponential, 4, 4 * time.Minute},
		{"last below the cap", exponential, 7, 32 * time.Minute},
		{"capped", exponential, 8, time.Hour},
		{"no overflow at 63", exponential, 64, time.Hour},
		{"no overflow at the end", exponential, math.MaxInt, time.Hour},
		{"zero counts as first", exponential, 0, 30 * time.Second},
		{"negative counts as first", exponential, -5, 30 * time.Second},
		{"base over the cap", retry.Policy{BaseDelay: time.Hour, MaxDelay: time.Second}, 1, time.Second},
		{"base zero", retry.Policy{MaxDelay: time.Second}, 99, 0},
		{"negative base", retry.Policy{BaseDelay: -1, MaxDelay: time.Second}, 1, 0},
		{"huge", huge, 1, math.MaxInt64 / 2},
		{"huge, doubled", huge, 2, math.MaxInt64 - 1},
		{"huge, capped", huge, 3, math.MaxInt64},
		{"schedule", schedule, 2, 5 * time.Minute},
		{"beyond the schedule", schedule, 9, 5 * time.Minute},
		{"empty schedule falls back", empty, 2, 2 * time.Second},
	} {
		if got := c.policy.Delay(c.n, top); got != c.want && c.want != math.MaxInt64 {
			t.Errorf("%s: longest delay %v, want %v", c.name, got, c.want)
		}
		if got := c.policy.Bound(c.n); got != c.want {
			t.Errorf("%s: bound %v, want %v", c.name, got, c.want)
		}
		if got := c.policy.Delay(c.n, bottom); got != 0 {
			t.Errorf("%s: shortest delay %v, want 0: full jitter begins there", c.name, got)
		}
	}
}

func TestDelayIsUniform(t *testing.T) {
	p := retry.Policy{BaseDelay: time.Second, MaxDelay: time.Second}
	const draws = 4000
	var quarters [4]int
	for range draws {
		d := p.Delay(3, nil)
		if d < 0 || d > time.Second {
			t.Fatalf("delay %v is outside [0, 1s]", d)
		}
		quarters[min(3, int(4*d/time.Second))]++
	}
	for i, n := range quarters {
		if n < draws/4*8/10 || n > draws/4*12/10 { // 7 standard deviations
			t.Errorf("quarter %d got %d of %d draws", i, n, draws)
		}
	}
}

func TestDelayNeverLeavesItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := retry.Policy{
			BaseDelay: time.Duration(rapid.Int64().Draw(t, "base")),
			MaxDelay:  time.Duration(rapid.Int64().Draw(t, "max")),
		}
		n := rapid.Int().Draw(t, "n")
		bound := p.Bound(n)
		if bound < 0 || bound > max(0, p.MaxDelay) {
			t.Fatalf("bound %v with maximum %v", bound, p.MaxDelay)
		}
		if p.BaseDelay > 0 && p.MaxDelay > 0 && bound == 0 {
			t.Fatal("a hot loop: the bound is zero")
		}
		if n < math.MaxInt && p.Bound(n+1) < bound {
			t.Fatal("the bound shrinks")
		}
		if d := p.Delay(n, nil); d < 0 || d > bound {
			t.Fatalf("delay %v with bound %v", d, bound)
		}
	})
}

func TestAttempts(t *testing.T) {
	for _, c := range []struct {
		policy retry.Policy
		want   int
	}{
		{retry.Policy{MaxAttempts: 5}, 5},
		{retry.Policy{}, 1},
		{retry.Policy{MaxAttempts: -3}, 1},
		{retry.Policy{HasSchedule: true, MaxAttempts: 7}, 1},
		{retry.Policy{HasSchedule: true, Schedule: make([]time.Duration, 3)}, 4},
	} {
		if got := c.policy.Attempts(); got != c.want {
			t.Errorf("%+v: %d attempts, want %d", c.policy, got, c.want)
		}
	}
}
