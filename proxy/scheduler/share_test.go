package scheduler

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/retry"
	"postern/spool"
)

// slowly is what thousands of addresses behind a broken resolver are like; everybody else answers at once.
func slowly(ctx context.Context, a Attempt) Outcome {
	if !strings.Contains(a.Lease.Event.Endpoint, "hang") {
		return ok(ctx, a)
	}
	select {
	case <-time.After(15 * time.Second):
		return Outcome{Attempt: spool.Attempt{Error: string(retry.Timeout)}, Class: retry.Timeout, Sampled: true}
	case <-ctx.Done():
		return Outcome{Cut: true}
	}
}

func adHocBut(names ...string) func(*Config, *policies) {
	return func(_ *Config, p *policies) {
		for _, name := range names {
			p.own[name] = usual()
		}
		p.common.Named = false
	}
}

// deliveredWithin adds an event and tells whether it was delivered in time.
func (r *rig) deliveredWithin(endpoint string, limit time.Duration) bool {
	seq := r.store.add(endpoint)
	time.Sleep(limit)
	synctest.Wait()
	results := r.store.of(seq)
	return len(results) == 1 && results[0].Verdict == spool.VerdictDelivered
}

// Thousands of addresses that hang, each with one event, hold no slot that an endpoint needs which is not slow: neither a
// named one that was never tried, nor an ad hoc one that was quick before.
func TestManySlowOnesLeaveSlots(t *testing.T) {
	inBubble(t, slowly, func(r *rig) {
		if !r.deliveredWithin("https://quick.example", 0) {
			t.Error("nothing is delivered while nothing else happens")
		}
		for i := range 2000 {
			r.store.add(fmt.Sprintf("https://hang%d.example", i))
		}
		synctest.Wait()
		for i := range 200 { // most of an hour: the retries of those that hang compete as well
			for _, name := range []string{"good", "https://quick.example"} {
				if !r.deliveredWithin(name, time.Millisecond) {
					t.Errorf("after %d rounds an event for %s waits", i, name)
					return
				}
			}
			time.Sleep(15 * time.Second)
		}
		if n := r.sender.mostAtOnce(); n > 64 {
			t.Errorf("%d attempts at once, 64 are allowed", n)
		}
		// None of those that hang is left out for the others' sake.
		tried := map[string]bool{}
		for _, s := range r.sender.log() {
			tried[s.endpoint] = true
		}
		if len(tried) != 2002 {
			t.Errorf("%d endpoints were tried, want all 2002", len(tried))
		}
	}, adHocBut("good"))
}

// Named endpoints that all hang after a restart leave slots to those that answered, and to the first that will.
func TestManySlowNamedOnes(t *testing.T) {
	inBubble(t, slowly, func(r *rig) {
		if !r.deliveredWithin("good", 0) {
			t.Error("nothing is delivered while nothing else happens")
		}
		for i := range 500 {
			r.store.add(fmt.Sprintf("hang%d", i))
		}
		synctest.Wait()
		if !r.deliveredWithin("good", time.Millisecond) {
			t.Error("an endpoint that answered before waits")
		}
		time.Sleep(10 * time.Minute) // each has been tried and found slow
		if !r.deliveredWithin("new", time.Millisecond) {
			t.Error("a named endpoint of which nothing is known waits")
		}
	})
}

// An endpoint that was slow once has all the slots again as soon as it is quick, and few slots are shared, too.
func TestStandingFollowsTheLastAttempt(t *testing.T) {
	for _, all := range []int{1, 2, 3, 8} {
		var hanging atomic.Bool
		hanging.Store(true)
		inBubble(t, func(ctx context.Context, a Attempt) Outcome {
			if hanging.Load() {
				return slowly(ctx, a)
			}
			return ok(ctx, a)
		}, func(r *rig) {
			for range 20 {
				r.store.add("https://hang.example")
			}
			time.Sleep(16 * time.Second)
			hanging.Store(false)
			time.Sleep(time.Hour)
			synctest.Wait()
			if n := r.store.finished(); n != 20 {
				t.Errorf("with %d slots %d of 20 events are finished", all, n)
			}
		}, adHocBut(), func(c *Config, _ *policies) { c.Concurrency = all })
	}
}

// A dozen endpoints that hang, with more events than there are slots, leave one to an endpoint that nobody knows yet,
// however long they have had to take them all; and those of a named one that was never tried.
func TestABackloggedDozenLeavesFirstSlots(t *testing.T) {
	inBubble(t, slowly, func(r *rig) {
		for i := range 12 {
			for range 40 {
				r.store.add(fmt.Sprintf("https://hang%d.example", i))
			}
		}
		for i := range 40 { // their attempts end and begin anew all the while
			time.Sleep(4 * time.Second)
			for _, name := range []string{"https://new%d.example", "new%d"} {
				if name = fmt.Sprintf(name, i); !r.deliveredWithin(name, time.Millisecond) {
					t.Fatalf("an event for %s waits", name)
				}
			}
		}
		if n := r.sender.mostAtOnce(); n < 40 || n > 64 {
			t.Errorf("%d attempts at once: most of the slots are to be used, and 64 are allowed", n)
		}
	}, adHocBut())
}

// Endpoints that are slow and deliver all the same, each with more events than there are slots, take turns: whoever gives a
// slot back stands behind those that wait. And one that was slow once is tried again soon.
func TestSlowOnesTakeTurns(t *testing.T) {
	after := func(ctx context.Context, d time.Duration) Outcome {
		time.Sleep(d)
		o := ok(ctx, Attempt{})
		o.Attempt.Duration = d
		return o
	}
	var recovered atomic.Bool
	inBubble(t, func(ctx context.Context, a Attempt) Outcome {
		if recovered.Load() && strings.Contains(a.Lease.Event.Endpoint, "once") {
			return after(ctx, time.Millisecond)
		}
		return after(ctx, 6*time.Second)
	}, func(r *rig) {
		r.store.add("once")
		time.Sleep(10 * time.Second)
		recovered.Store(true)
		for i := range 100 {
			for range 60 {
				r.store.add(fmt.Sprintf("slow%d", i))
			}
		}
		time.Sleep(time.Minute)
		if !r.deliveredWithin("once", time.Minute) {
			t.Error("one that was slow once waits for those that are")
		}
		time.Sleep(5 * time.Minute)
		tried := map[string]int{}
		for _, s := range r.sender.log() {
			tried[s.endpoint]++
		}
		fewest, most := 1<<30, 0
		for i := range 100 {
			n := tried[fmt.Sprintf("slow%d", i)]
			fewest, most = min(fewest, n), max(most, n)
		}
		if fewest == 0 || fewest*2 < most {
			t.Errorf("%d attempts for one, %d for another", fewest, most)
		}
	})
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		all                             int
		slow, stranger, untried, beside int            // first slots held by each, and others
		first, further                  [standings]int // room
	}{
		{256, 0, 0, 0, 0, [...]int{160, 192, 224, 256}, [...]int{128, 128, 160, 256}},
		{256, 0, 0, 0, 128, [...]int{32, 64, 96, 256}, [...]int{0, 0, 32, 256}},
		{256, 0, 40, 0, 128, [...]int{24, 24, 56, 256}, [...]int{0, 0, 32, 256}},
		{256, 12, 0, 0, 128, [...]int{20, 52, 84, 256}, [...]int{0, 0, 32, 256}},
		{256, 160, 0, 0, 0, [...]int{0, 32, 64, 256}, [...]int{0, 0, 32, 256}},
		{256, 160, 32, 0, 0, [...]int{0, 0, 32, 256}, [...]int{0, 0, 32, 256}},
		{256, 0, 100, 92, 0, [...]int{0, 0, 32, 256}, [...]int{0, 0, 32, 256}},
		{256, 0, 0, 224, 0, [...]int{-32, -32, 0, 256}, [...]int{-32, -32, 0, 256}},
		{1, 0, 0, 0, 0, [...]int{1, 1, 1, 1}, [...]int{1, 1, 1, 1}},
		{1, 1, 0, 0, 0, [...]int{0, 0, 0, 1}, [...]int{0, 0, 0, 1}},
		{4, 0, 0, 0, 0, [...]int{3, 3, 4, 4}, [...]int{2, 2, 3, 4}},
		{8, 1, 0, 0, 0, [...]int{4, 5, 6, 8}, [...]int{4, 4, 5, 8}},
	} {
		var sh share
		sh.held[slow][first], sh.held[stranger][first], sh.held[untried][first] = tt.slow, tt.stranger, tt.untried
		sh.held[slow][further] = tt.beside / 2
		sh.held[stranger][further] = tt.beside - tt.beside/2
		sh.held[quick][first], sh.held[quick][further] = tt.all, tt.all
		for r, want := range map[rank][standings]int{first: tt.first, further: tt.further} {
			var got [standings]int
			for st := range standing(standings) {
				got[st] = sh.room(st, r, tt.all)
			}
			if got != want {
				t.Errorf("%+v: room for rank %d is %v", tt, r, got)
			}
		}
	}
}

// Many that hang and have long backlogs, one after the other while earlier ones have had the time to take more slots: the
// next one finds a first slot, as long as they are fewer than a quarter of all slots; and however many they are, once they
// are known to be slow.
func TestHangingOnesOneByOne(t *testing.T) {
	for name, c := range map[string]struct{ hang, slots int }{"few slots": {12, 64}, "the default": {40, 256}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, slowly, func(r *rig) {
				for i := range c.hang {
					for range 40 {
						r.store.add(fmt.Sprintf("https://hang%d.example", i))
					}
					time.Sleep(300 * time.Millisecond)
					if name := fmt.Sprintf("https://new%d.example", i); !r.deliveredWithin(name, time.Millisecond) {
						t.Errorf("an event for %s waits", name)
						return
					}
				}
				for i := range 300 { // far more than there are slots
					r.store.add(fmt.Sprintf("https://hang.too%d.example", i))
				}
				time.Sleep(15 * time.Minute) // each has been tried: an eighth of the slots is theirs at least
				for i := range 20 {
					time.Sleep(4 * time.Second)
					if name := fmt.Sprintf("https://later%d.example", i); !r.deliveredWithin(name, time.Millisecond) {
						t.Errorf("an event for %s waits", name)
						return
					}
				}
			}, adHocBut(), func(c2 *Config, _ *policies) { c2.Concurrency = c.slots })
		})
	}
}
