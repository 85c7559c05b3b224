package syncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/spool"
	"postern/sync/pgstore"
)

// bench is a syncer between an outbox and a store that are both in memory.
type bench struct {
	*Syncer
	t      *testing.T
	outbox *fakeOutbox
	store  *fakeStore
	log    *logBuffer
	opened atomic.Int32
	stop   context.CancelFunc
	ended  chan struct{}
}

// start runs a syncer; it is to be called in a bubble of synctest, and stopped there.
func start(t *testing.T, change ...func(*bench)) *bench {
	b := &bench{t: t, outbox: &fakeOutbox{}, store: &fakeStore{}, log: &logBuffer{}, ended: make(chan struct{})}
	b.Syncer = New(Config{BatchRows: 100}, Parts{
		Outbox: b.outbox,
		Open:   func(context.Context) (Store, error) { b.opened.Add(1); return b.store, nil },
		Endpoint: func(name string) (Endpoint, bool) {
			return Endpoint{URL: "https://url.example/" + name, MaxAttempts: 5}, name != "gone"
		},
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	})
	for _, c := range change {
		c(b)
	}
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	go func() {
		defer close(b.ended)
		b.Run(ctx)
	}()
	synctest.Wait()
	return b
}

// end stops the syncer and returns how long that took.
func (b *bench) end() time.Duration {
	began := time.Now()
	b.stop()
	<-b.ended
	return time.Since(began)
}

// pass lets time go by until everybody waits again.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRowsAreWrittenAndMarkedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.outbox.add("a", "b")
		pass(2 * time.Second)
		b.outbox.add("c")
		pass(2 * time.Second)
		if got := b.store.written(); got != "a b c" || b.outbox.left() != 0 || b.store.seen().migrated != 1 {
			t.Errorf("written %q, %d left, migrated %d times", got, b.outbox.left(), b.store.seen().migrated)
		}
		st := b.Status()
		if !st.Connected || st.LagSeconds != 0 || st.RowsTotal != 3 || st.Error != nil {
			t.Errorf("status %+v", st)
		}
		b.end()
		if b.store.seen().closed != 1 {
			t.Error("the store is still open")
		}
	})
}

func TestABacklogIsWorkedOffWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		for i := range 1050 {
			b.outbox.add(fmt.Sprint(i))
		}
		pass(2*time.Second + 10*maxRest)
		if n := b.outbox.left(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		b.end()
	})
}

// TestABacklogRestsForDeliveriesAlone: where nothing is being delivered a backlog goes as fast as it can.
func TestABacklogRestsForDeliveriesAlone(t *testing.T) {
	for _, busy := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, func(b *bench) {
				b.parts.Busy = func() bool { return busy }
				b.store.fail = func(call string, _ []pgstore.Row) error {
					if call == "write" {
						time.Sleep(100 * time.Millisecond)
					}
					return nil
				}
			})
			for i := range 1000 {
				b.outbox.add(fmt.Sprint(i))
			}
			pass(2*time.Second + 9*100*time.Millisecond + 50*time.Millisecond)
			if left := b.outbox.left(); (left > 100) != busy {
				t.Errorf("busy %v: %d rows are left", busy, left)
			}
			pass(time.Second)
			b.end()
		})
	}
}

// TestBigBodiesDoNotWait: a batch that big bodies cut short is followed by the next one, not by an interval.
func TestBigBodiesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(b *bench) { b.outbox.small = 3 })
		for i := range 50 {
			b.outbox.add(fmt.Sprint(i))
		}
		pass(2*time.Second + 20*maxRest)
		if seen := b.store.seen(); b.outbox.left() != 0 || seen.writes != 17 {
			t.Errorf("%d rows are left after %d writes", b.outbox.left(), seen.writes)
		}
		b.end()
	})
}

// TestOutage: while the store is away nothing is marked, tries become rare and are never given up, and rows go on within
// the longest wait after it is back.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.store.set(func() { b.store.fail = func(string, []pgstore.Row) error { return errAway } })
		b.outbox.add("a")
		pass(time.Hour)
		st := b.Status()
		if b.outbox.left() != 1 || st.Connected || st.Error == nil || st.LagSeconds < 3590 {
			t.Errorf("%d left, status %+v", b.outbox.left(), st)
		}
		if n := b.store.seen().writes; n < 3600/5 || n > 2*3600/5+10 {
			t.Errorf("%d tries in an hour", n)
		}
		if n := strings.Count(b.log.String(), "sync waits"); n != 1 {
			t.Errorf("said %d times that it waits", n)
		}
		b.store.set(func() { b.store.fail = nil })
		pass(backoffCap)
		if b.store.written() != "a" || b.outbox.left() != 0 || !b.Status().Connected || !strings.Contains(b.log.String(), "works again") {
			t.Errorf("written %q, status %+v, log %s", b.store.written(), b.Status(), b.log)
		}
		b.end()
	})
}

func TestPoisonIsFoundAndSetApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.store.set(func() { b.store.fail = poisoned("7", "8", "63") })
		var want []string
		for i := range 100 {
			b.outbox.add(fmt.Sprint(i))
			if i != 7 && i != 8 && i != 63 {
				want = append(want, fmt.Sprint(i))
			}
		}
		pass(2 * time.Second)
		if got := b.store.written(); got != strings.Join(want, " ") {
			t.Errorf("written %s", got)
		}
		if got := slices.Sorted(maps.Keys(b.outbox.apart())); !slices.Equal(got, []string{"63", "7", "8"}) || b.outbox.left() != 0 {
			t.Errorf("refused %q, %d left", got, b.outbox.left())
		}
		if st := b.Status(); st.RejectedRows != 3 || st.RowsTotal != 97 || !st.Connected {
			t.Errorf("status %+v", st)
		}
		if b.store.seen().writes > 50 {
			t.Errorf("%d writes for three rows of a hundred", b.store.seen().writes)
		}
		b.end()
	})
}

func TestStopFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(b *bench) { b.parts.Snapshot = func() Snapshot { return Snapshot{} } })
		for i := range 250 {
			b.outbox.add(fmt.Sprint(i))
		}
		took := b.end()
		if b.outbox.left() != 0 || took > time.Second {
			t.Errorf("%d left after %v", b.outbox.left(), took)
		}
		if last := b.store.seen().beats[len(b.store.seen().beats)-1]; !last.Stopping {
			t.Error("no goodbye")
		}
	})
}

// TestStopInABlackHole: neither a store that swallows calls nor a spool that hangs holds up a stop beyond its limit.
func TestStopInABlackHole(t *testing.T) {
	for name, prepare := range map[string]func(b *bench){
		"before the stop":   func(b *bench) { b.outbox.add("a"); b.store.set(func() { b.store.hole = true }); pass(3 * time.Second) },
		"at the last flush": func(b *bench) { b.outbox.add("a"); b.store.set(func() { b.store.hole = true }) },
		"spool":             func(b *bench) { b.outbox.add("a"); b.outbox.stuck = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				prepare(b)
				if took := b.end(); took > 5*time.Second {
					t.Errorf("the stop took %v", took)
				}
				if b.outbox.left() != 1 || b.store.seen().closed != 1 {
					t.Errorf("%d left, closed %d times", b.outbox.left(), b.store.seen().closed)
				}
				if b.outbox.stuck != nil {
					close(b.outbox.stuck)
				}
			})
		})
	}
}

func TestWhatIsUnderWayAtAStopIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.store.set(func() {
			b.store.fail = func(string, []pgstore.Row) error { time.Sleep(3 * time.Second); return nil }
		})
		b.outbox.add("a")
		pass(2*time.Second + time.Millisecond)
		b.end()
		if b.store.seen().writes != 1 || b.outbox.left() != 0 {
			t.Errorf("%d writes, %d left", b.store.seen().writes, b.outbox.left())
		}
	})
}

func TestReopen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.store.set(func() { b.store.fail = func(string, []pgstore.Row) error { return errAway } })
		b.outbox.add("a")
		pass(time.Minute)
		b.store.set(func() { b.store.fail = nil })
		b.Reopen()
		synctest.Wait()
		if b.opened.Load() != 2 || b.store.seen().closed != 1 || b.store.written() != "a" {
			t.Errorf("opened %d times, closed %d, written %q", b.opened.Load(), b.store.seen().closed, b.store.written())
		}
		b.end()
	})
}

func TestABadConnectionStringIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		b := start(t, func(b *bench) {
			open := b.parts.Open
			b.parts.Open = func(ctx context.Context) (Store, error) {
				if !mended.Load() {
					return nil, errors.New("sync.dsn cannot be read")
				}
				return open(ctx)
			}
		})
		b.outbox.add("a")
		pass(time.Minute)
		mended.Store(true)
		b.Reopen()
		synctest.Wait()
		if b.store.written() != "a" || !strings.Contains(b.log.String(), "sync.dsn") {
			t.Errorf("written %q, log %s", b.store.written(), b.log)
		}
		b.end()
	})
}

// TestAMissingTableIsLookedForAgain: whoever mends the schema need not restart anything.
func TestAMissingTableIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.store.set(func() {
			b.store.fail = func(call string, _ []pgstore.Row) error {
				if call == "write" {
					return errSetup
				}
				return nil
			}
		})
		b.outbox.add("a")
		pass(time.Minute)
		if b.store.seen().migrated < 10 || b.outbox.left() != 1 {
			t.Errorf("looked at the schema %d times, %d left", b.store.seen().migrated, b.outbox.left())
		}
		b.end()
	})
}

func TestHealthIsSentWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Value
		state.Store("closed")
		opened := time.Now()
		b := start(t, func(b *bench) {
			b.parts.Snapshot = func() Snapshot {
				opened = opened.Add(time.Microsecond) // wanders as two clocks do
				return Snapshot{Health: []pgstore.Health{
					{EndpointName: "partner-a", State: state.Load().(string), OpenedAt: opened}, {EndpointName: "https://b.example", State: "closed"},
				}}
			}
		})
		pass(20 * time.Second)
		state.Store("open")
		pass(2 * time.Second)
		if len(b.store.seen().health) != 2 || len(b.store.seen().health[0]) != 2 || len(b.store.seen().health[1]) != 1 {
			t.Fatalf("health was sent %d times: %+v", len(b.store.seen().health), b.store.seen().health)
		}
		if h := b.store.seen().health[1][0]; h.State != "open" || h.EndpointURL != "https://url.example/partner-a" {
			t.Errorf("sent %+v", h)
		}
		if n := len(b.store.seen().beats); n != 12 {
			t.Errorf("%d heartbeats in 22 seconds", n)
		}
		pass(time.Minute)
		if n := len(b.store.seen().health); n != 3 || len(b.store.seen().health[2]) != 2 || b.store.seen().kept != 2 {
			t.Errorf("a minute later: sent %d times, maintained %d times", n, b.store.seen().kept)
		}
		b.end()
	})
}

func TestMaintenanceThatIsNotAllowedHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(b *bench) {
			b.store.fail = func(call string, _ []pgstore.Row) error {
				if call == "maintain" {
					return errSetup
				}
				return nil
			}
		})
		b.outbox.add("a")
		pass(10 * time.Second)
		if b.store.written() != "a" || !b.Status().Connected || strings.Count(b.log.String(), "not looked after") != 1 {
			t.Errorf("written %q, log %s", b.store.written(), b.log)
		}
		b.end()
	})
}

func TestTranslate(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	s := New(Config{}, Parts{
		Endpoint: func(name string) (Endpoint, bool) {
			return Endpoint{URL: "https://configured.example/pb", MaxAttempts: 7}, name != "gone"
		},
		Payload: func(r spool.OutboxRow) []byte { return []byte(r.EventID) },
	})
	got := s.translate([]spool.OutboxRow{
		{EventID: "a", Version: 3, Endpoint: "partner-a", State: spool.StateFailed, Attempts: 2, MaxAttempts: 9, AcceptedAt: at, NextAttempt: at.Add(time.Hour),
			Attempt: &spool.Attempt{Number: 2, StartedAt: at, Duration: time.Second, StatusCode: 503, Error: "http_503"}},
		{EventID: "b", Version: 2, Endpoint: "https://adhoc.example", AcceptedAt: at},
		{EventID: "c", Version: 1, Endpoint: "gone", State: spool.StatePending, AcceptedAt: at},
	})
	first := got[0]
	if first.EndpointURL != "https://configured.example/pb" || first.MaxAttempts != 9 || first.Status != "failed" || !first.NextAttempt.Equal(at.Add(time.Hour)) ||
		*first.Attempt != (pgstore.Attempt{Number: 2, EndedAt: at.Add(time.Second), Duration: time.Second, StatusCode: 503, Error: "http_503"}) || string(first.Payload) != "a" {
		t.Errorf("first: %+v, %+v", first, first.Attempt)
	}
	if got[1].EndpointURL != "https://adhoc.example" || got[1].Status != "" || got[1].MaxAttempts != 7 || got[1].Attempt != nil {
		t.Errorf("second: %+v", got[1])
	}
	if got[2].EndpointURL != "gone" || got[2].Status != "pending" {
		t.Errorf("third: %+v", got[2])
	}
}

func TestBackoffGrowsAndIsBounded(t *testing.T) {
	var b backoff
	for i := range 100 {
		low := min(backoffStart<<min(i, 10), backoffCap) / 2
		if d := b.next(); d < low || d > 2*low {
			t.Errorf("wait %d is %v, want %v to %v", i, d, low, 2*low)
		}
	}
	b.reset()
	if d := b.next(); d > backoffStart {
		t.Errorf("after a reset the wait is %v", d)
	}
}
