package bucket

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// send asks and, if allowed, lets a request leave at once.
func send(b *Bucket, now time.Time) bool {
	if _, ok := b.Ask(now, 0); !ok || !b.Take(now) {
		return false
	}
	b.Sent(now)
	return true
}

// drain lets n requests leave as early as the bucket allows, and returns when they did, counted from now.
func drain(t *testing.T, b *Bucket, now time.Time, n int) []time.Duration {
	t.Helper()
	var times []time.Duration
	clock := now
	for asks := 0; len(times) < n; asks++ {
		if asks > 3*n {
			t.Fatalf("asked %d times for %d sends", asks, n)
		}
		at, ok := b.Ask(clock, 0)
		if !ok {
			if !at.After(clock) {
				t.Fatalf("refused at %v until %v: a busy loop", clock, at)
			}
			clock = at
			continue
		}
		if !send(b, clock) {
			t.Fatal("Ask allowed what Take refused")
		}
		times = append(times, clock.Sub(now))
	}
	return times
}

func TestEvenSpacing(t *testing.T) {
	b := New([]Limit{{100, time.Minute}}, 1, start)
	times := drain(t, b, start, 300)
	want := (time.Minute + 50*time.Millisecond) / 100
	for i, at := range times {
		if off := (at - time.Duration(i)*want).Abs(); off > time.Millisecond {
			t.Fatalf("send %d left after %v, want %v", i, at, time.Duration(i)*want)
		}
	}
}

func TestBurst(t *testing.T) {
	b := New([]Limit{{10, time.Second}}, 5, start)
	times := drain(t, b, start, 40)
	if times[4] != 0 || times[5] == 0 {
		t.Errorf("the first six left after %v, want five at once", times[:6])
	}
	for i := range times[:30] {
		if d := times[i+10] - times[i]; d < 1050*time.Millisecond {
			t.Errorf("sends %d to %d left within %v", i, i+10, d)
		}
	}
}

func TestALongerWindowOnlyCaps(t *testing.T) {
	b := New([]Limit{{10, time.Second}, {25, time.Minute}}, 10, start)
	times := drain(t, b, start, 26)
	if times[24] > 3*time.Second || times[25] < time.Minute {
		t.Errorf("the 25th left after %v and the 26th after %v", times[24], times[25])
	}
}

func TestNoLimits(t *testing.T) {
	b := New(nil, 0, start)
	for range 1000 {
		if !send(b, start) {
			t.Fatal("refused without a limit")
		}
	}
	if b.Limited() || b.sent.n != 0 {
		t.Errorf("limited %v, %d sends recorded", b.Limited(), b.sent.n)
	}
}

func TestPermitsThatAreOutCountAsLeavingNow(t *testing.T) {
	b := New([]Limit{{3, time.Second}}, 3, start)
	for out := range 3 {
		if _, ok := b.Ask(start, out); !ok || !b.Take(start) {
			t.Fatalf("refused with %d out", out)
		}
	}
	late := start.Add(time.Hour)
	if at, ok := b.Ask(late, 3); ok || !at.IsZero() {
		t.Fatalf("an hour later, three still out: ok %v at %v; want to wait for one to end", ok, at)
	}
	b.Sent(late) // the first leaves, an hour after its permit
	b.Sent(late.Add(time.Millisecond))
	if at, ok := b.Ask(late, 1); ok || !at.Equal(late.Add(1050*time.Millisecond)) {
		t.Errorf("ok %v at %v, want the window of the first late send", ok, at)
	}
	if _, ok := b.Ask(late.Add(1050*time.Millisecond), 1); !ok {
		t.Error("refused when the first had left the window")
	}
}

func TestSlack(t *testing.T) {
	for per, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 105 * time.Millisecond,
		time.Second:            1050 * time.Millisecond,
		time.Minute:            time.Minute + 50*time.Millisecond,
	} {
		b := New([]Limit{{1, per}}, 1, start)
		send(b, start)
		if at, _ := b.Ask(start, 0); at.Sub(start).Round(time.Millisecond) != want {
			t.Errorf("1/%v: the next after %v, want %v", per, at.Sub(start), want)
		}
	}
}

// TestTheWaitIsLongEnough: who comes back when told is never told to wait once more, however the arithmetic of the
// spacing rounds.
func TestTheWaitIsLongEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{rapid.IntRange(1, 5000).Draw(t, "n"), time.Duration(rapid.Int64Range(1e6, 1e15).Draw(t, "per"))}
		b := New([]Limit{l}, rapid.IntRange(1, l.N).Draw(t, "burst"), start)
		now := start
		for range 50 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(l.Per)/int64(l.N)).Draw(t, "gap")))
			if at, ok := b.Ask(now, 0); !ok {
				now = at
			}
			if !send(b, now) {
				at, _ := b.Ask(now, 0)
				t.Fatalf("%v: told to come back at %v, and then %v later", l, now, at.Sub(now))
			}
		}
	})
}

func TestUndo(t *testing.T) {
	b := New([]Limit{{1, 24 * time.Hour}}, 1, start)
	for i := range 5 {
		now := start.Add(time.Duration(i) * time.Second)
		if _, ok := b.Ask(now, 0); !ok || !b.Take(now) {
			t.Fatalf("attempt %d refused, though none has left", i)
		}
		b.Undo(now.Add(time.Second))
	}
	now := start.Add(time.Minute)
	b.Take(now)
	b.Sent(now)
	if at, ok := b.Ask(now, 0); ok || at.Sub(now) < 24*time.Hour {
		t.Errorf("after one that left: ok %v, next after %v", ok, at.Sub(now))
	}
}

func TestUndoNeverExceedsTheBurst(t *testing.T) {
	b := New([]Limit{{100, time.Minute}}, 2, start)
	for range 10 {
		b.Undo(start)
	}
	if times := drain(t, b, start, 4); times[1] != 0 || times[2] == 0 {
		t.Errorf("left after %v, want two at once", times)
	}
}

func TestAnEarlierTimeGivesNothingTwice(t *testing.T) {
	b := New([]Limit{{10, time.Second}}, 1, start)
	b.Take(start.Add(time.Second))
	for range 5 {
		if b.Take(start) {
			t.Fatal("a token twice")
		}
	}
	if _, ok := b.Ask(start.Add(1050*time.Millisecond), 0); ok {
		t.Error("the clock that stepped back filled the bucket")
	}
}

func TestSetLimitsKeepsWhatIsSpent(t *testing.T) {
	b := New([]Limit{{5, time.Minute}}, 5, start)
	drain(t, b, start, 5)
	b.SetLimits([]Limit{{6, time.Minute}}, 6, start)
	if at, ok := b.Ask(start, 0); ok {
		t.Fatalf("the reload handed out new tokens (at %v)", at)
	}
	b.SetLimits([]Limit{{3, time.Minute}}, 3, start)
	if at, ok := b.Ask(start, 0); ok || at.Sub(start) < time.Minute {
		t.Errorf("a lower limit: ok %v after %v", ok, at.Sub(start))
	}
	b.SetLimits(nil, 0, start)
	if _, ok := b.Ask(start, 0); !ok {
		t.Error("refused when the limits were gone")
	}
	b.SetLimits([]Limit{{5, time.Minute}}, 5, start)
	if at, ok := b.Ask(start, 0); ok || at.Sub(start) < time.Minute {
		t.Errorf("the limits came back: ok %v after %v", ok, at.Sub(start))
	}
}

func TestUse(t *testing.T) {
	b := New([]Limit{{10, time.Second}, {100, time.Minute}}, 10, start)
	drain(t, b, start, 10)
	uses := b.Use(start.Add(2*time.Second), 3)
	if uses[0] != (Use{Limit{10, time.Second}, 3}) || uses[1] != (Use{Limit{100, time.Minute}, 13}) {
		t.Errorf("%+v", uses)
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		limits []Limit
		burst  int
		want   string
	}{
		"none":                 {nil, 0, ""},
		"one":                  {[]Limit{{5, time.Second}}, 1, ""},
		"burst of all":         {[]Limit{{5, time.Second}, {3, time.Minute}}, 5, ""},
		"zero count":           {[]Limit{{0, time.Second}}, 1, "limit 0/1s lets nothing through"},
		"too many":             {[]Limit{{MaxN + 1, time.Hour}}, 1, "too large"},
		"no window":            {[]Limit{{5, 0}}, 1, "window must be 1ms"},
		"no burst":             {[]Limit{{5, time.Second}}, 0, "between 1 and 5"},
		"burst over the count": {[]Limit{{5, time.Second}, {50, time.Hour}}, 6, "between 1 and 5"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(c.limits, c.burst)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func BenchmarkAsk(b *testing.B) {
	bucket := New([]Limit{{1000, time.Minute}, {10000, time.Hour}}, 1000, start)
	for range 1000 {
		send(bucket, start)
	}
	b.ReportAllocs()
	for b.Loop() {
		bucket.Ask(start, 3)
	}
}
