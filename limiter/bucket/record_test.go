package bucket

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flatten turns runs back into single times.
func flatten(runs []Run) (times []time.Time) {
	for _, r := range runs {
		for range r.N {
			times = append(times, r.At)
		}
	}
	return times
}

// TestRecordNeverSaysEarlier: whatever is sent, each send that a window can still reach is recorded, at its own time
// or at a later one by no more than the share of its age.
func TestRecordNeverSaysEarlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New([]Limit{{2000, time.Hour}, {100, time.Second}}, 1, start)
		now := start
		var sent []time.Time
		for range rapid.IntRange(0, 40).Draw(t, "groups") {
			gap := time.Duration(math.Exp(rapid.Float64Range(0, 25).Draw(t, "gap")))
			for range rapid.IntRange(1, 50).Draw(t, "together") {
				now = now.Add(gap)
				b.Sent(now)
				sent = append(sent, now)
			}
		}
		got := flatten(b.Record(now))
		for len(sent) > 0 && !sent[0].After(now.Add(-b.longest())) {
			sent = sent[1:]
		}
		if len(got) != len(sent) {
			t.Fatalf("%d recorded, want %d", len(got), len(sent))
		}
		for i := range got {
			age := now.Sub(sent[i])
			if late := got[i].Sub(sent[i]); late < 0 || late > age/coarse || len(sent) <= exactRuns && late != 0 {
				t.Fatalf("send %d of age %v recorded %v later", i, age, late)
			}
		}
	})
}

func TestALargeRecordIsCompact(t *testing.T) {
	b := New([]Limit{{MaxN, 24 * time.Hour}}, 1, start)
	for i := range MaxN {
		b.Sent(start.Add(time.Duration(i) * 80 * time.Millisecond))
	}
	now := start.Add(MaxN * 80 * time.Millisecond)
	runs := b.Record(now)
	if len(runs) > 700 || len(flatten(runs)) != MaxN {
		t.Errorf("%d runs for %d sends", len(runs), len(flatten(runs)))
	}
}

func TestRestoreSpacesToo(t *testing.T) {
	old := New([]Limit{{10, time.Second}}, 3, start)
	drain(t, old, start, 3)
	b := New([]Limit{{10, time.Second}}, 3, start)
	b.Restore(old.Record(start), start)
	at, ok := b.Ask(start, 0)
	if want, _ := old.Ask(start, 0); ok || at.Sub(want).Abs() > 2*time.Microsecond {
		t.Errorf("after a restart: ok %v, next at %v; want %v", ok, at, want)
	}
}

func TestRestoreOfMoreThanTheLimitIsBounded(t *testing.T) {
	b := New([]Limit{{10, time.Second}}, 1, start)
	b.Restore([]Run{{start, math.MaxInt}, {start, -3}}, start)
	if b.sent.n != 10 {
		t.Errorf("%d sends recorded", b.sent.n)
	}
}
