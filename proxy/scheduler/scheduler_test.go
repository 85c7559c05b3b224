package scheduler

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"postern/limiter/bucket"
	"postern/proxy/retry"
	"postern/spool"
)

func TestDeliversAndTellsOnce(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		seq := r.store.add("a")
		synctest.Wait()
		got := r.store.of(seq)
		if len(got) != 1 || got[0].Verdict != spool.VerdictDelivered || got[0].Attempt.Number != 1 {
			t.Fatalf("results: %+v", got)
		}
		if len(r.ears.told) != 1 || r.ears.told[0].Result != retry.OutcomeDelivered {
			t.Errorf("told: %+v", r.ears.told)
		}
	})
}

// Days of failures pass: five attempts with growing gaps, then a dead letter, and no attempt more.
func TestRetriesOverDays(t *testing.T) {
	inBubble(t, failWith(503), func(r *rig) {
		seq := r.store.add("a")
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		log := r.sender.log()
		if len(log) != 5 {
			t.Fatalf("%d attempts, want 5", len(log))
		}
		bound := 30 * time.Second
		for i := 1; i < len(log); i++ {
			if log[i].number != i+1 {
				t.Errorf("attempt %d has number %d", i+1, log[i].number)
			}
			if gap := log[i].at.Sub(log[i-1].at); gap > bound {
				t.Errorf("attempt %d came after %v, want %v at most", i+1, gap, bound)
			}
			bound *= 2
		}
		if got := r.store.of(seq); got[4].Verdict != spool.VerdictDead || got[4].Reason != spool.ReasonExhausted {
			t.Errorf("the end: %+v", got[4])
		}
	})
}

func TestBoundsOfConcurrency(t *testing.T) {
	slow := func(context.Context, Attempt) Outcome {
		time.Sleep(time.Second)
		return ok(context.Background(), Attempt{})
	}
	inBubble(t, slow, func(r *rig) {
		for i := range 400 {
			r.store.add(fmt.Sprintf("e%d", i%20))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := r.store.finished(); n != 400 {
			t.Errorf("%d finished, want 400", n)
		}
		if r.sender.top > 64 {
			t.Errorf("%d attempts at once, want 64 at most", r.sender.top)
		}
		for name, most := range r.sender.most {
			if most > 8 {
				t.Errorf("%s: %d at once, want 8 at most", name, most)
			}
		}
	})
}

// However many endpoints hang, one that is well finds a slot at once.
func TestHangingEndpointsLeaveSlots(t *testing.T) {
	answer := func(ctx context.Context, a Attempt) Outcome {
		if a.Lease.Event.Endpoint == "well" {
			return ok(ctx, a)
		}
		return hang(ctx, a)
	}
	inBubble(t, answer, func(r *rig) {
		for i := range 12 * 20 {
			r.store.add(fmt.Sprintf("hanging%d", i%12))
		}
		synctest.Wait()
		start := time.Now()
		for range 50 {
			r.store.add("well")
		}
		synctest.Wait()
		if n := r.store.finished(); n != 50 || time.Since(start) > 0 {
			t.Errorf("%d of 50 delivered after %v", n, time.Since(start))
		}
	})
}

// While a backlog drains, a new event does not wait for all of it.
func TestNewEventsKeepAShare(t *testing.T) {
	slow := func(context.Context, Attempt) Outcome {
		time.Sleep(time.Second)
		return ok(context.Background(), Attempt{})
	}
	inBubble(t, slow, func(r *rig) {
		for range 1000 {
			r.store.put("a")
		}
		r.Wake("a")
		time.Sleep(10 * time.Second)
		seq := r.store.add("a")
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if len(r.store.of(seq)) == 0 {
			t.Error("the new event still waits behind the backlog")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := r.store.finished(); n != 1001 {
			t.Errorf("%d finished, want 1001", n)
		}
	})
}

func TestAPausedEndpointCostsNothing(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		if err := r.Pause(context.Background(), "a", "by hand"); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			r.store.put("a")
		}
		r.Wake("a")
		for range 100 {
			r.store.add("a")
		}
		synctest.Wait()
		calls := r.store.leaseCalls
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if r.store.leaseCalls != calls || len(r.sender.log()) != 0 {
			t.Errorf("%d reads and %d sends while paused", r.store.leaseCalls-calls, len(r.sender.log()))
		}
		if n := r.store.leasedNow(); n != 0 {
			t.Errorf("%d events are kept in memory", n)
		}
		if err := r.Resume(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := r.store.finished(); n != 2100 {
			t.Errorf("%d finished, want 2100", n)
		}
	})
}

func TestNothingIsSentWhileTheSpoolCannotBeWritten(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		r.store.setWritable(false)
		r.store.add("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(r.sender.log()); n != 0 {
			t.Errorf("%d sends", n)
		}
		r.store.setWritable(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := r.store.finished(); n != 1 {
			t.Errorf("%d finished, want 1", n)
		}
	})
}

func TestGonePausesNamedEndpointsAlone(t *testing.T) {
	inBubble(t, failWith(410), func(r *rig) {
		r.store.add("named")
		r.store.add("https://ad.hoc")
		synctest.Wait()
		r.store.add("named")
		r.store.add("https://ad.hoc")
		time.Sleep(time.Hour)
		synctest.Wait()
		counts := map[string]int{}
		for _, s := range r.sender.log() {
			counts[s.endpoint]++
		}
		if counts["named"] != 1 || counts["https://ad.hoc"] != 2 {
			t.Errorf("sends: %v", counts)
		}
		if v, _ := r.Endpoint("named"); !v.Gate.Paused {
			t.Error("the named endpoint is not paused")
		}
	}, func(_ *Config, p *policies) {
		adHoc := usual()
		adHoc.Named = false
		p.own["https://ad.hoc"] = adHoc
	})
}

func TestTTLPassesWhileWaiting(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		l := r.store.put("a", func(e *spool.Event) { e.TTL = time.Minute })
		time.Sleep(2 * time.Minute)
		r.Wake("a")
		synctest.Wait()
		got := r.store.of(l.Event.Seq)
		if len(got) != 1 || got[0].Verdict != spool.VerdictDead || got[0].Reason != spool.ReasonExpired || got[0].Attempt != nil {
			t.Fatalf("results: %+v", got)
		}
		if len(r.sender.log()) != 0 {
			t.Error("it was sent all the same")
		}
	})
}

func TestTooManyRequestsStopTheWholeEndpoint(t *testing.T) {
	n := 0
	answer := func(context.Context, Attempt) Outcome {
		if n++; n <= 5 {
			o := failWith(429)(context.Background(), Attempt{})
			o.RetryAfter, o.HasRetryAfter = time.Second, true
			return o
		}
		return ok(context.Background(), Attempt{})
	}
	inBubble(t, answer, func(r *rig) {
		for range 10 {
			r.store.add("a")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := r.store.finished(); got != 10 {
			t.Fatalf("%d finished, want 10", got)
		}
		log := r.sender.log()
		for i := 1; i <= 5; i++ {
			if gap := log[i].at.Sub(log[i-1].at); gap < time.Second {
				t.Errorf("send %d came %v after a 429 that asked for a second", i+1, gap)
			}
		}
	}, func(_ *Config, p *policies) { p.common.Limiter.Concurrency = 1 })
}

func TestLimitsHoldAndAreReserved(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		for range 30 {
			r.store.add("a")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		log := r.sender.log()
		if len(log) != 30 || r.store.saves == 0 {
			t.Fatalf("%d sends, %d saves", len(log), r.store.saves)
		}
		for i := 5; i < len(log); i++ {
			if gap := log[i].at.Sub(log[i-5].at); gap < time.Second {
				t.Errorf("sends %d to %d within %v", i-4, i+1, gap)
			}
		}
	}, func(_ *Config, p *policies) {
		p.common.Limiter.Limits = []bucket.Limit{{N: 5, Per: time.Second}}
		p.common.Limiter.Burst = 5
	})
}

func TestAnEndpointThatLeftWaitsAndReturns(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		r.book.mu.Lock()
		r.book.gone["a"] = true
		r.book.mu.Unlock()
		r.store.add("a")
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(r.sender.log()); n != 0 {
			t.Fatalf("%d sends", n)
		}
		r.book.mu.Lock()
		r.book.gone["a"] = false
		r.book.mu.Unlock()
		r.Reconfigure(64)
		synctest.Wait()
		if n := r.store.finished(); n != 1 {
			t.Errorf("%d finished, want 1", n)
		}
	})
}

// A stop lets running attempts end within its grace, cuts the rest, and gives all that waits back untried.
func TestStop(t *testing.T) {
	answer := func(ctx context.Context, a Attempt) Outcome {
		if a.Lease.Event.Endpoint == "quick" {
			time.Sleep(time.Second)
			return ok(ctx, a)
		}
		return hang(ctx, a)
	}
	inBubble(t, answer, func(r *rig) {
		for range 20 {
			r.store.add("quick")
			r.store.add("hanging")
		}
		synctest.Wait()
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		r.Stop(grace)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if n := r.store.finished(); n != 1 {
			t.Errorf("%d finished, want the one that was on its way", n)
		}
	})
}

func TestAStaleConnectionIsNoFault(t *testing.T) {
	n := 0
	answer := func(context.Context, Attempt) Outcome {
		if n++; n == 1 {
			return Outcome{Class: retry.Connection, Stale: true}
		}
		return ok(context.Background(), Attempt{})
	}
	inBubble(t, answer, func(r *rig) {
		start := time.Now()
		seq := r.store.add("a")
		synctest.Wait()
		if got := r.store.of(seq); len(got) != 2 || time.Since(start) != 0 {
			t.Errorf("%d attempts after %v, want a second one at once", len(got), time.Since(start))
		}
		if v, _ := r.Endpoint("a"); v.Gate.ConsecutiveFailures != 0 {
			t.Error("it was counted against the endpoint")
		}
	})
}

// TestAConnectionThatAlwaysBreaks: at the third time in a row it is a failure like others, so that a receiver which refuses
// every stream is not asked again and again without a pause.
func TestAConnectionThatAlwaysBreaks(t *testing.T) {
	answer := func(_ context.Context, a Attempt) Outcome {
		return Outcome{Attempt: spool.Attempt{Number: a.Number, Error: string(retry.Connection)}, Class: retry.Connection, Stale: true}
	}
	inBubble(t, answer, func(r *rig) {
		seq := r.store.add("a")
		synctest.Wait()
		if got := r.store.of(seq); len(got) != 3 {
			t.Errorf("%d attempts at once, want 3", len(got))
		}
		if v, _ := r.Endpoint("a"); v.Gate.ConsecutiveFailures != 1 {
			t.Errorf("%d failures are counted, want 1", v.Gate.ConsecutiveFailures)
		}
	})
}

func TestAdHocLinesAreForgotten(t *testing.T) {
	answer := func(ctx context.Context, a Attempt) Outcome {
		if a.Lease.Event.Seq%2 == 0 {
			return failWith(404)(ctx, a) // leaves a failure in the gate
		}
		return ok(ctx, a)
	}
	limited := func(_ *Config, p *policies) { p.common.Limiter.Limits = []bucket.Limit{{N: 1000, Per: time.Minute}} }
	inBubble(t, answer, func(r *rig) {
		for i := range 3000 {
			r.store.add(fmt.Sprintf("https://host%d.example", i))
		}
		r.store.add("named")
		synctest.Wait()
		time.Sleep(2 * time.Hour)
		r.store.add("named")
		synctest.Wait()
		if n := len(r.Gates()); n != 1 {
			t.Errorf("%d lines are remembered, want 1", n)
		}
		delete(r.store.states, "named")
		if n := len(r.store.states); n != 0 {
			t.Errorf("%d limiter states are still stored", n)
		}
	}, limited)
}

// A record that cannot be read must not stop those behind it.
func TestUnreadableRecordsDoNotStopALine(t *testing.T) {
	inBubble(t, ok, func(r *rig) {
		r.store.put("a")
		r.store.mu.Lock()
		r.store.unreadable = 3
		r.store.mu.Unlock()
		r.Wake("a")
		time.Sleep(time.Second)
		synctest.Wait()
		if n := r.store.finished(); n != 1 {
			t.Errorf("%d finished, want 1", n)
		}
	})
}

func TestMemoryOfWaitingEventsIsBounded(t *testing.T) {
	inBubble(t, hang, func(r *rig) {
		for i := range 2000 {
			r.store.add(fmt.Sprintf("https://host%d.example", i%200), func(e *spool.Event) { e.Target = string(make([]byte, 4096)) })
		}
		synctest.Wait()
		// 64 in flight, 1 MiB of 5 KiB events, a quarter more since the store goes by the 4 KiB that it has to read, and one
		// event read for each line whatever the memory says.
		if held := r.store.leasedNow(); held > 64+210+53+200 {
			t.Errorf("%d events of 5 KiB are held in 1 MiB", held)
		}
	}, func(c *Config, _ *policies) { c.MemoryBytes = 1 << 20 })
}

func TestClockNeverGoesBack(t *testing.T) {
	base := time.Now().Round(0)
	for set, want := range map[time.Duration]bool{0: false, -time.Hour: false, time.Hour: true, time.Millisecond: true} {
		if got := ahead(base, time.Minute, base.Add(time.Minute+set)); got != want {
			t.Errorf("a clock that was set by %v is followed: %v, want %v", set, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := &clock{}
		first := c.now()
		time.Sleep(time.Hour)
		if got := c.now().Sub(first); got != time.Hour {
			t.Errorf("an hour took %v", got)
		}
	})
}

// A person may act on an event that merely waits in memory.
func TestLetGo(t *testing.T) {
	inBubble(t, hang, func(r *rig) {
		for range 10 {
			r.store.add("a")
		}
		synctest.Wait()
		r.LetGo("a")
		if n := r.store.leasedNow(); n != 1 {
			t.Errorf("%d are out, want the one that is on its way", n)
		}
	})
}

// Where this machine has no descriptor left, the event is kept, not charged, and tried again after a while.
func TestExhaustedMachineChargesNobody(t *testing.T) {
	n := 0
	answer := func(ctx context.Context, a Attempt) Outcome {
		if n++; n <= 3 {
			return Outcome{Cut: true, Exhausted: true, Unsent: true}
		}
		return ok(ctx, a)
	}
	inBubble(t, answer, func(r *rig) {
		start := time.Now()
		seq := r.store.add("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		got := r.store.of(seq)
		if len(got) != 1 || got[0].Attempt.Number != 1 || r.sender.log()[3].at.Sub(start) != 3*exhaustedPause {
			t.Errorf("%d results, sends %v", len(got), r.sender.log())
		}
	})
}
