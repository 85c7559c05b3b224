package limiter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

// ErrState is wrapped by Restore's errors.
var ErrState = errors.New("the endpoint's stored limiter state cannot be used and was left out; " +
	"breaker, pause and limits begin anew (pause the endpoint again if it was paused)")

const (
	// maxMillis is the year 10000: no clock shows more, and arithmetic with less cannot overflow.
	maxMillis = 253402300800000
	// maxWait bounds a stored throttle: a year.
	maxWait = uint64(365 * 24 * time.Hour / time.Millisecond)
)

// stored is a decoded state.
type stored struct {
	memory   breaker.Memory
	pause    pause
	throttle throttle
	reserved int
	runs     []bucket.Run
}

// Restore returns the gate of an endpoint whose State was stored, perhaps by an earlier process. What was reserved
// and is not known to be sent counts as sent now. An empty state is that of an endpoint of which nothing is known.
// The gate is usable in any case; an error, which wraps ErrState, says that the state was not and was left out.
func Restore(p Policy, state []byte, now time.Time) (*Gate, error) {
	g := New(p, now)
	if len(state) == 0 {
		return g, nil
	}
	s, err := decode(state)
	if err != nil {
		return g, fmt.Errorf("%w: %w", ErrState, err)
	}
	s.memory.OpenedAt = local(s.memory.OpenedAt, now)
	g.breaker = breaker.Restore(p.Breaker, s.memory, now)
	g.pause = s.pause
	g.pause.since = local(g.pause.since, now)
	g.throttle = s.throttle
	g.throttle.since = local(g.throttle.since, now)
	if g.throttle.since.After(now) {
		// The clock was set back. It waits for no longer than the receiver asked for.
		g.throttle.since = now
	}
	g.bucket.Restore(s.record(now), now)
	return g, nil
}

// record returns the sends to count: none of the past if the clock was set back since, for then their age is unknown.
func (s *stored) record(now time.Time) []bucket.Run {
	runs := s.runs
	// Rounding up to the millisecond alone may put a send that far ahead.
	if n := len(runs); n > 0 && runs[n-1].At.After(now.Add(time.Millisecond)) {
		runs = nil
	}
	if s.reserved > 0 {
		runs = append(runs, bucket.Run{At: now, N: s.reserved})
	}
	return runs
}

// local turns a stored wall-clock time into one at the same distance from now, with its monotonic reading.
func local(t, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(now))
}

func decode(state []byte) (stored, error) {
	if state[0] != stateVersion {
		return stored{}, fmt.Errorf("its version is %d and this Postern reads %d", state[0], stateVersion)
	}
	body := len(state) - crc32.Size
	if body < 2 || crc32.Checksum(state[:body], castagnoli) != binary.LittleEndian.Uint32(state[body:]) {
		return stored{}, errors.New("its checksum is wrong")
	}
	r := reader{rest: state[1:body]}
	s := r.stored()
	if r.bad || len(r.rest) > 0 {
		return stored{}, errors.New("its content is malformed")
	}
	return s, nil
}

// reader takes values off a state. After the first that cannot be it is bad, and all others are zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) stored() (s stored) {
	flags := r.byte()
	s.memory.State = breaker.State(flags & (flagPaused - 1))
	if s.memory.State > breaker.Open || flags > flagsKnown {
		r.bad = true
	}
	s.memory.Failures = int(r.uvarint(math.MaxInt32))
	s.memory.FailedProbes = int(r.uvarint(math.MaxInt32))
	s.memory.Slots = int(r.uvarint(math.MaxInt32))
	if s.memory.State != breaker.Closed {
		s.memory.OpenedAt = r.time(0)
	}
	if flags&flagPaused != 0 {
		s.pause = pause{on: true, since: r.time(0), reason: r.text()}
	}
	if flags&flagThrottled != 0 {
		s.throttle = throttle{on: true, since: r.time(0), wait: time.Duration(r.uvarint(maxWait)) * time.Millisecond}
	}
	s.reserved = int(r.uvarint(bucket.MaxN))
	s.runs = r.runs()
	return s
}

func (r *reader) runs() (runs []bucket.Run) {
	var before int64
	for range r.uvarint(uint64(len(r.rest))) {
		at := r.time(before)
		n := int(r.uvarint(bucket.MaxN))
		if r.bad {
			return nil
		}
		runs = append(runs, bucket.Run{At: at, N: n})
		before = at.UnixMilli()
	}
	return runs
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// uvarint reads a number that may be most at most.
func (r *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > most {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// time reads milliseconds that count from those given.
func (r *reader) time(from int64) time.Time {
	return time.UnixMilli(from + int64(r.uvarint(uint64(maxMillis-from))))
}

func (r *reader) text() string {
	n := int(r.uvarint(maxReason))
	if r.bad || n > len(r.rest) {
		r.bad = true
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}
