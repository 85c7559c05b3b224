package limiter

import (
	"testing"
	"time"

	"postern/limiter/bucket"
)

// perSecond is a policy of n a second that may all leave at once.
func perSecond(n int) Policy {
	p := policy(bucket.Limit{N: n, Per: time.Second})
	p.Burst, p.Concurrency = n, 10*n
	return p
}

// second is a second with its slack.
const second = 1050 * time.Millisecond

// used is how many sends count in the first window.
func (b *bench) used() int { return b.Snapshot(b.now).Limits[0].Used }

func TestReserveSize(t *testing.T) {
	for n, want := range map[int]int{1: 1, 20: 1, 100: 5, 1000: 50, 100_000: 64} {
		if got := New(perSecond(n), start).Ask(start, 0); got.Reserve != want || got.Reason != ReasonReserving {
			t.Errorf("%d a second: %+v, want to reserve %d", n, got, want)
		}
	}
	small := policy(bucket.Limit{N: 1000, Per: time.Second}, bucket.Limit{N: 100, Per: time.Hour})
	if got := New(small, start).Ask(start, 0); got.Reserve != 5 {
		t.Errorf("the smallest limit does not decide: %+v", got)
	}
	if got := New(policy(), start).Ask(start, 0); !got.Allow {
		t.Errorf("without limits: %+v", got)
	}
}

func TestNothingLeavesBeforeItsReservationIsOnDisk(t *testing.T) {
	b := newBench(t, perSecond(100))
	b.Reserve(2, b.now)
	b.refused(ReasonReserving, -1)
	b.Reserved(2, b.now)
	b.Reserved(2, b.now) // told twice
	for range 2 {
		if _, ok := b.Take(b.now, 0); !ok {
			t.Fatal("a reserved send is refused")
		}
	}
	b.refused(ReasonReserving, -1)
	b.Reserved(2, b.now) // nobody asked
	b.refused(ReasonReserving, -1)
}

func TestAReservationThatFailedIsMadeAgain(t *testing.T) {
	b := newBench(t, perSecond(100))
	b.Reserve(5, b.now) // the disk refuses
	b.Reserve(5, b.now)
	b.Reserved(5, b.now)
	b.Reserved(5, b.now) // the first got there after all
	n := 0
	for ; n < 20; n++ {
		if _, ok := b.Take(b.now, 0); !ok {
			break
		}
	}
	if n != 5 {
		t.Errorf("%d sends on a reservation of 5", n)
	}
}

// TestAStateStoredMeanwhileCoversTheReservation: another state is made after Reserve's and before Reserved, and is the
// one that a kill finds.
func TestAStateStoredMeanwhileCoversTheReservation(t *testing.T) {
	b := newBench(t, perSecond(100))
	b.Reserve(5, b.now)
	disk := b.State()
	b.Reserved(5, b.now)
	for range 5 {
		p, _ := b.Take(b.now, 0)
		b.Left(p, b.now)
	}
	b.kill(disk)
	if b.used() != 5 {
		t.Errorf("%d count after the kill, 5 have left", b.used())
	}
}

func TestAKillCountsWhatWasReservedAsSentAtTheRestart(t *testing.T) {
	b := newBench(t, perSecond(100))
	p := b.take() // reserves 5
	b.Left(p, b.now)
	b.after(10 * time.Second)
	b.kill(b.disk)
	if b.used() != 5 {
		t.Fatalf("%d count, want the 5 reserved", b.used())
	}
	b.after(second)
	if b.used() != 0 {
		t.Errorf("%d still count a window later", b.used())
	}
}

func TestACleanStopLosesNothing(t *testing.T) {
	b := newBench(t, perSecond(100))
	p := b.take()
	b.Left(p, b.now)
	b.end(p, Success)
	b.GiveBack()
	b.restart()
	if b.used() != 1 {
		t.Errorf("%d count, want the 1 that left", b.used())
	}
	b.after(second)
	if b.used() != 0 {
		t.Errorf("%d still count a window later", b.used())
	}
	b.refused(ReasonReserving, -1)
}

func TestUnsentIsNotSpent(t *testing.T) {
	p := policy(bucket.Limit{N: 1, Per: 24 * time.Hour})
	b := newBench(t, p)
	for range 3 {
		permit := b.take()
		b.open--
		b.Report(permit, Outcome{Unsent: true}, b.now)
	}
	permit := b.take()
	b.Left(permit, b.now)
	b.open--
	b.Report(permit, Outcome{Kind: Success, Unsent: true}, b.now) // a contradiction: it left
	b.after(24 * time.Hour)
	b.refused(ReasonRateLimited, 50*time.Millisecond)
}

func TestLateLeavesAndMissingOnes(t *testing.T) {
	b := newBench(t, perSecond(2))
	first, second2 := b.take(), b.take()
	b.refused(ReasonRateLimited, -1)
	b.after(time.Hour)
	b.refused(ReasonRateLimited, -1) // they may leave any moment
	b.Left(first, b.now)
	b.after(500 * time.Millisecond)
	b.end(second2, Failure) // Left was never told: it counts from now
	b.after(second - 500*time.Millisecond)
	b.take()
	b.refused(ReasonRateLimited, 500*time.Millisecond)
}

func TestTheNextNeedNotWaitForTheAnswer(t *testing.T) {
	b := newBench(t, perSecond(1))
	p := b.take()
	b.refused(ReasonRateLimited, -1)
	b.Left(p, b.now)
	b.refused(ReasonRateLimited, second)
	b.after(second + time.Microsecond)
	b.take()
}

func TestLeftBeforeItsPermitIsTakenAsOfThen(t *testing.T) {
	b := newBench(t, perSecond(1))
	p := b.take()
	b.Left(p, b.now.Add(-time.Hour))
	b.refused(ReasonRateLimited, second)
}

func TestAClockThatWasSetBackVoidsTheRecord(t *testing.T) {
	b := newBench(t, perSecond(10))
	for range 10 {
		b.end(b.take(), Success)
	}
	b.GiveBack()
	b.after(-time.Hour)
	b.restart()
	if b.used() != 0 {
		t.Errorf("%d sends of the future count", b.used())
	}
	b.tries(Success)
}

func TestLimitsThatComeWithAReloadCountWhatIsOut(t *testing.T) {
	b := newBench(t, policy())
	b.take()
	b.take()
	b.SetPolicy(perSecond(2), b.now)
	b.refused(ReasonRateLimited, -1)
}
