package limiter

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"postern/limiter/bucket"
)

// wallJump returns t as if the wall clock had been set by d (whole seconds) since the process started: its monotonic
// reading stays. No call of package time can do that, so it is done to the seconds inside the value.
func wallJump(t *testing.T, now time.Time, d time.Duration) time.Time {
	t.Helper()
	jumped := now
	*(*uint64)(unsafe.Pointer(&jumped)) += uint64(int64(d/time.Second) << 30)
	if jumped.Sub(now) != 0 || jumped.Round(0).Sub(now.Round(0)) != d {
		t.Fatal("the time package keeps its values in another way than this test knows")
	}
	return jumped
}

func TestAWallClockThatJumpsMovesNothing(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			p := policy(bucket.Limit{N: 3, Per: time.Minute})
			p.Burst = 3
			begin := time.Now()
			begin = begin.Add(-time.Duration(begin.Nanosecond() % 1e6)) // stored times are whole milliseconds
			b := &bench{t: t, Gate: New(p, begin), now: begin}
			b.tries(Failure, Failure, Failure)
			b.now = wallJump(t, begin.Add(time.Second), jump)

			s := b.Snapshot(b.now)
			if got := s.NextAllowed.Sub(b.now); got != 5*time.Minute-time.Second {
				t.Errorf("the breaker is open for %v more", got)
			}
			if s.Limits[0].Used != 3 {
				t.Errorf("%d sends count, want 3", s.Limits[0].Used)
			}
			if got := b.now.Round(0).Sub(s.OpenedAt.Round(0)); got != time.Second {
				t.Errorf("by today's clock it opened %v ago", got)
			}

			// A restart reads the clock as it is now: the state was stored by it.
			b.GiveBack()
			disk := b.State()
			b.now = b.now.Round(0)
			b.kill(disk)
			b.refused(ReasonBreakerOpen, 5*time.Minute-time.Second)
			if used := b.used(); used != 3 {
				t.Errorf("after a restart %d sends count, want 3", used)
			}
		})
	}
}

// TestThreeDays lets a scheduler drain a backlog as fast as the gate allows for three days of virtual time, to a
// receiver that fails for hours, throttles at times and counts at its own door; the process is killed every five hours.
func TestThreeDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(bucket.Limit{N: 100, Per: time.Minute}, bucket.Limit{N: 1000, Per: time.Hour})
		r := &receiver{t: t, begin: time.Now()}
		g, disk := New(p, time.Now()), []byte(nil)
		kill := time.Now().Add(5 * time.Hour)
		for time.Since(r.begin) < 72*time.Hour {
			now := time.Now()
			if now.After(kill) {
				kill = now.Add(5 * time.Hour)
				g, _ = Restore(p, disk, now)
			}
			d := g.Ask(now, 0)
			switch {
			case d.Reserve > 0:
				disk = g.Reserve(d.Reserve, now)
				g.Reserved(d.Reserve, now)
			case !d.Allow:
				time.Sleep(time.Until(d.At))
			default:
				permit, _ := g.Take(now, 0)
				time.Sleep(time.Duration(len(r.times)%7) * time.Millisecond) // connecting
				g.Left(permit, time.Now())
				if g.Report(permit, r.answer(), time.Now()) {
					disk = g.State()
				}
			}
		}
		r.check(bucket.Limit{N: 100, Per: time.Minute}, bucket.Limit{N: 1000, Per: time.Hour})
	})
}

// receiver is healthy for six hours, then broken for two, and so on.
type receiver struct {
	t      *testing.T
	begin  time.Time
	times  []time.Time
	broken int
}

func (r *receiver) answer() Outcome {
	now := time.Now()
	r.times = append(r.times, now)
	switch {
	case now.Sub(r.begin)%(8*time.Hour) > 6*time.Hour:
		r.broken++
		return Outcome{Kind: Failure}
	case len(r.times)%500 == 0:
		return Outcome{Kind: Throttled, Wait: time.Minute}
	default:
		return Outcome{Kind: Success}
	}
}

func (r *receiver) check(limits ...bucket.Limit) {
	for _, l := range limits {
		for i := l.N; i < len(r.times); i++ {
			if d := r.times[i].Sub(r.times[i-l.N]); d <= l.Per {
				r.t.Fatalf("%d requests within %v", l.N+1, d)
			}
		}
	}
	// 54 healthy hours of 1000 each. Half-open phases after the outages, kills and the 429 cost a few hours' worth.
	if len(r.times) < 46_000 {
		r.t.Errorf("%d requests only", len(r.times))
	}
	// Nine outages of two hours: three failures, then probes after 5, 10, 20, 40 and 60 minutes at most.
	if r.broken > 9*8 {
		r.t.Errorf("%d requests to a broken receiver", r.broken)
	}
}
