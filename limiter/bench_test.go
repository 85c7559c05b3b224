package limiter

import (
	"testing"
	"time"

	"postern/limiter/bucket"
)

// ready returns a gate with a full record that always has one more send to give, a microsecond after the last.
func ready() *Gate {
	p := policy(bucket.Limit{N: 1000, Per: time.Millisecond}, bucket.Limit{N: 20_000, Per: 20 * time.Millisecond})
	p.Burst = 1000
	g := New(p, start)
	g.Reserve(1<<50, start)
	g.Reserved(1<<50, start)
	return g
}

func BenchmarkAsk(b *testing.B) {
	g := ready()
	b.ReportAllocs()
	for b.Loop() {
		g.Ask(start, 3)
	}
}

func BenchmarkAttempt(b *testing.B) {
	g, now := ready(), start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(2 * time.Microsecond)
		p, ok := g.Take(now, 0)
		if !ok {
			b.Fatalf("%+v", g.Ask(now, 0))
		}
		g.Left(p, now)
		g.Report(p, Outcome{Kind: Success}, now)
	}
}

func BenchmarkState(b *testing.B) {
	g, now := ready(), start
	for range 20_000 {
		now = now.Add(2 * time.Microsecond)
		p, _ := g.Take(now, 0)
		g.Report(p, Outcome{Kind: Success}, now)
	}
	for b.Loop() {
		g.State()
	}
}

// TestAnAttemptAllocatesNothing: the gate is asked for every due event.
func TestAnAttemptAllocatesNothing(t *testing.T) {
	g, now := ready(), start
	attempt := func() {
		now = now.Add(2 * time.Microsecond)
		p, _ := g.Take(now, 0)
		g.Left(p, now)
		g.Report(p, Outcome{Kind: Success}, now)
	}
	for range 40_000 { // the record grows to its full size
		attempt()
	}
	if n := testing.AllocsPerRun(1000, attempt); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
