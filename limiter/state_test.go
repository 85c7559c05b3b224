package limiter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"reflect"
	"testing"
	"time"

	"postern/limiter/bucket"
)

// rich returns a gate whose state has everything in it.
func rich(t testing.TB) *Gate {
	p := perSecond(10)
	p.Limits = append(p.Limits, bucket.Limit{N: 1000, Per: time.Hour})
	g := New(p, start)
	now := start
	g.Reserve(50, now)
	g.Reserved(50, now)
	for range 30 {
		now = now.Add(second)
		permit, ok := g.Take(now, 0)
		if !ok {
			t.Fatalf("%+v", g.Ask(now, 0))
		}
		g.Left(permit, now.Add(333*time.Microsecond))
		g.Report(permit, Outcome{Kind: Success}, now)
	}
	for range 3 {
		now = now.Add(second)
		permit, _ := g.Take(now, 0)
		g.Report(permit, Outcome{Kind: Failure}, now)
	}
	permit, _ := g.Take(now.Add(5*time.Minute), 0)
	g.Report(permit, Outcome{Kind: Throttled, Wait: time.Minute}, now.Add(5*time.Minute))
	g.Pause("maintenance", now)
	return g
}

func TestStateSurvivesRestarts(t *testing.T) {
	g := rich(t)
	now := g.last
	want := g.Snapshot(now)
	want.Limits[1].Used += g.reserved()
	want.Limits[0].Used += g.reserved()
	for range 3 {
		var err error
		g, err = Restore(g.policy, g.State(), now)
		if err != nil {
			t.Fatal(err)
		}
		got := g.Snapshot(now)
		if !got.OpenedAt.Equal(want.OpenedAt) || !got.PausedAt.Equal(want.PausedAt) {
			t.Fatalf("opened at %v, paused at %v, want %v and %v", got.OpenedAt, got.PausedAt, want.OpenedAt, want.PausedAt)
		}
		got.OpenedAt, got.PausedAt = want.OpenedAt, want.PausedAt // another location
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	}
}

func TestStateIsCompact(t *testing.T) {
	p := policy(bucket.Limit{N: 100_000, Per: time.Hour})
	p.Burst = 100_000
	g := New(p, start)
	g.Reserve(1<<20, start)
	g.Reserved(1<<20, start)
	for i := range 100_000 {
		now := start.Add(time.Duration(i) * 30 * time.Millisecond)
		permit, _ := g.Take(now, 0)
		g.Report(permit, Outcome{Kind: Success}, now)
	}
	if n := len(g.State()); n > 2500 {
		t.Errorf("%d bytes", n)
	}
	if n := len(New(policy(), start).State()); n > 16 {
		t.Errorf("%d bytes for nothing", n)
	}
}

func TestRestoreOfAnUnusableState(t *testing.T) {
	good := rich(t).State()
	newer := bytes.Clone(good)
	newer[0] = 99
	for name, state := range map[string][]byte{
		"one byte":   {stateVersion},
		"cut":        good[:len(good)-5],
		"newer":      newer,
		"text":       []byte("not a state at all"),
		"bad inside": sealed([]byte{stateVersion, 0xff, 1, 2, 3}),
		"too long":   sealed(append(bytes.Clone(good[:len(good)-4]), 0)),
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Restore(perSecond(10), state, start)
			if !errors.Is(err, ErrState) {
				t.Errorf("error %v", err)
			}
			b := &bench{t: t, Gate: g, now: start}
			b.tries(Success)
		})
	}
	if g, err := Restore(policy(), nil, start); err != nil || !g.Ask(start, 0).Allow {
		t.Errorf("an empty state: %v", err)
	}
}

func TestEveryFlippedBitIsNoticed(t *testing.T) {
	good := rich(t).State()
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := Restore(perSecond(10), bad, start); err == nil {
			t.Fatalf("bit %d flipped: no error", i)
		}
	}
}

// sealed appends the checksum.
func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// FuzzRestore feeds arbitrary content under a right checksum: the gate must be usable, must not be wedged by it, and
// must store itself in a form that it reads.
func FuzzRestore(f *testing.F) {
	state := rich(f).State()
	f.Add(state[:len(state)-4])
	f.Add([]byte{stateVersion, flagPaused | flagThrottled | 2, 1, 2, 3, 4, 5, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range []Policy{policy(), perSecond(10)} {
			g, _ := Restore(p, sealed(body), start)
			again, err := Restore(p, g.State(), start)
			if err != nil {
				t.Fatalf("its own state: %v", err)
			}
			for _, g := range []*Gate{g, again} {
				g.Snapshot(start)
				soon(t, g, start)
			}
		}
	})
}

// soon checks that the gate lets something through once a person resumes it and time passes: a year at most, which is
// the longest throttle that can be stored.
func soon(t interface{ Fatalf(string, ...any) }, g *Gate, now time.Time) {
	g.Resume(now)
	end := now.AddDate(1, 0, 2)
	for range 10 {
		d := g.Ask(now, 0)
		switch {
		case d.Allow:
			if _, ok := g.Take(now, 0); !ok {
				t.Fatalf("Take refuses what Ask allows")
			}
			return
		case d.Reserve > 0:
			g.Reserve(d.Reserve, now)
			g.Reserved(d.Reserve, now)
		case !d.At.After(now) || d.At.After(end):
			t.Fatalf("wedged at %v: %+v", now, d)
		default:
			now = d.At
		}
	}
	t.Fatalf("still refused at %v: %+v", now, g.Ask(now, 0))
}
