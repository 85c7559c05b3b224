package limiter

import (
	"encoding/binary"
	"hash/crc32"
	"time"
	"unicode/utf8"

	"postern/limiter/breaker"
)

// The stored form: a version, a byte of flags, then what the flags announce as varints, then a checksum. Times are
// wall-clock milliseconds, rounded up: a send may be recorded as later than it was, never as earlier.
//
//	version flags failures failedProbes slots
//	[not closed] openedAt
//	[paused]     since length reason
//	[throttled]  since wait
//	reserved runs [first count] [delta count]…
//	crc32
const (
	stateVersion  = 1
	flagPaused    = 1 << 2 // below it, two bits of breaker.State
	flagThrottled = 1 << 3
	flagsKnown    = flagThrottled<<1 - 1
)

// maxReason bounds a pause's reason, which is stored with every state.
const maxReason = 200

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// State returns what a restart must not forget: breaker, pause, throttle, the record of sends, and how many sends are
// reserved beyond it. It is a kilobyte or two at most.
func (g *Gate) State() []byte {
	m := g.breaker.Memory()
	flags := byte(m.State)
	if g.pause.on {
		flags |= flagPaused
	}
	if g.throttle.on {
		flags |= flagThrottled
	}
	b := []byte{stateVersion, flags}
	for _, n := range []int{m.Failures, m.FailedProbes, m.Slots} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if m.State != breaker.Closed {
		b = binary.AppendUvarint(b, g.millis(m.OpenedAt))
	}
	if g.pause.on {
		b = binary.AppendUvarint(b, g.millis(g.pause.since))
		b = binary.AppendUvarint(b, uint64(len(g.pause.reason)))
		b = append(b, g.pause.reason...)
	}
	if g.throttle.on {
		b = binary.AppendUvarint(b, g.millis(g.throttle.since))
		b = binary.AppendUvarint(b, uint64(ceilMillis(g.throttle.wait)))
	}
	b = g.appendRecord(b)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (g *Gate) appendRecord(b []byte) []byte {
	runs := g.bucket.Record(g.last)
	b = binary.AppendUvarint(b, uint64(g.reserved()))
	b = binary.AppendUvarint(b, uint64(len(runs)))
	var before uint64
	for _, r := range runs {
		at := g.millis(r.At)
		b = binary.AppendUvarint(b, at-before)
		b = binary.AppendUvarint(b, uint64(r.N))
		before = at
	}
	return b
}

// millis returns the wall-clock milliseconds of a time, by the wall clock of the latest time that the gate was told.
func (g *Gate) millis(t time.Time) uint64 {
	return uint64(max(nextMilli(wall(t, g.last)).UnixMilli(), 0))
}

// nextMilli rounds up to whole milliseconds, which is what is kept: nothing is allowed sooner than before a restart.
func nextMilli(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// shorten cuts a text to maxReason bytes, between characters.
func shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
