package spool

import (
	"fmt"
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// keptAttempts is how many of the last attempts an event keeps beside its first.
const keptAttempts = 20

// progress is Progress with what only the spool needs.
type progress struct {
	Progress
	version uint64 // of the event's outbox rows: 1 is its acceptance
	// planned is when NextAttempt was decided, where that was by another clock than the last attempt's; see otherClock.
	planned time.Time
	// sealed is the answer where a key sealed it, behind its stamp; Answer is nil then until it is opened.
	sealed []byte
}

// tried tells failed from pending.
func (p *progress) tried() bool { return p.Attempts > 0 }

// withAttempt returns the history with one more attempt, the middle left out once it is full. The old slice may be in
// use by a lease's holder, so it is never written to.
func withAttempt(history []Attempt, a Attempt) []Attempt {
	out := make([]Attempt, 0, len(history)+1)
	if len(history) > keptAttempts {
		out = append(append(out, history[0]), history[len(history)-keptAttempts+1:]...)
	} else {
		out = append(out, history...)
	}
	return append(out, a)
}

func encodeProgress(p *progress) []byte {
	e := layout.NewEncoder(nil, layout.KindProgress)
	putProgress(&e, p)
	if !p.planned.IsZero() {
		e.Time(p.planned)
	}
	return e.Record()
}

func decodeProgress(seq uint64, rec []byte) (progress, error) {
	fields, err := layout.Fields(layout.KindProgress, rec)
	if err != nil {
		return progress{}, fmt.Errorf("progress of event %d: %w", seq, err)
	}
	d := layout.NewDecoder(string(fields))
	p := getProgress(d)
	if d.More() {
		p.planned = d.Time()
	}
	if err := d.Err(); err != nil {
		return progress{}, fmt.Errorf("progress of event %d: %w", seq, err)
	}
	return p, nil
}

func putProgress(e *layout.Encoder, p *progress) {
	e.Uint(p.version)
	e.Uint(uint64(p.Attempts))
	e.Uint(uint64(p.Charged))
	e.Time(p.Since)
	e.Time(p.NextAttempt)
	e.String(p.DeadReason)
	e.Time(p.DeadAt)
	putHistory(e, p.History)
	switch {
	case len(p.sealed) > 0:
		e.Uint(answerSealed)
		e.Bytes(p.sealed)
	case p.Answer != nil:
		e.Uint(answerPlain)
		putAnswer(e, p.Answer)
	default:
		e.Uint(answerNone)
	}
}

// What a record of progress says about the answer that follows.
const (
	answerNone uint64 = iota
	answerPlain
	answerSealed
)

func putAnswer(e *layout.Encoder, a *Answer) {
	e.Int(int64(a.StatusCode))
	e.String(a.Location)
	e.Bytes(a.Body)
}

func getAnswer(d *layout.Decoder) *Answer {
	return &Answer{StatusCode: int(d.Int()), Location: d.String(), Body: d.Bytes()}
}

// setAnswer keeps an answer, sealed where the ring seals. It is bound to its event.
func (p *progress) setAnswer(seq uint64, a *Answer, ring *keyring.Ring) {
	p.Answer, p.sealed = a, nil
	if a == nil || !ring.Seals() {
		return
	}
	e := layout.NewEncoder(nil, layout.KindProgress)
	putAnswer(&e, a)
	stamp := ring.Stamp()
	p.Answer, p.sealed = nil, ring.Seal(stamp[:], stamp, 0, e.Fields(), layout.SeqKey(seq))
}

// openAnswer makes a sealed answer readable.
func (p *progress) openAnswer(seq uint64, ring *keyring.Ring) error {
	stamp, ok := p.answerStamp()
	if !ok {
		return nil
	}
	plain, err := ring.Open(nil, stamp, 0, p.sealed[keyring.StampLen:], layout.SeqKey(seq))
	if err != nil {
		return fmt.Errorf("the answer kept for event %d: %w", seq, err)
	}
	d := layout.NewDecoder(string(plain))
	p.Answer, p.sealed = getAnswer(d), nil
	return d.Err()
}

// answerStamp tells how the answer is sealed; ok is false where it is not, or there is none.
func (p *progress) answerStamp() (stamp keyring.Stamp, ok bool) {
	if len(p.sealed) < keyring.StampLen {
		return stamp, false
	}
	return keyring.Stamp(p.sealed[:keyring.StampLen]), true
}

func getProgress(d *layout.Decoder) progress {
	var p progress
	p.version = d.Uint()
	p.Attempts = int(d.Uint())
	p.Charged = int(d.Uint())
	p.Since = d.Time()
	p.NextAttempt = d.Time()
	p.DeadReason = d.String()
	p.DeadAt = d.Time()
	p.History = getHistory(d)
	switch d.Uint() {
	case answerPlain:
		p.Answer = getAnswer(d)
	case answerSealed:
		p.sealed = d.Bytes()
	}
	return p
}

// The history's start times are written as differences, in microseconds like the durations: 10 bytes for an attempt.
func putHistory(e *layout.Encoder, history []Attempt) {
	e.Uint(uint64(len(history)))
	var last int64
	for _, a := range history {
		us := int64(layout.Micros(a.StartedAt))
		e.Uint(uint64(a.Number))
		e.Int(us - last)
		e.Int(a.Duration.Microseconds())
		e.Int(int64(a.StatusCode))
		e.String(a.Error)
		last = us
	}
}

func getHistory(d *layout.Decoder) []Attempt {
	n := d.Count(5)
	if n == 0 {
		return nil
	}
	history := make([]Attempt, n)
	var us int64
	for i := range history {
		a := &history[i]
		a.Number = int(d.Uint())
		us += d.Int()
		a.StartedAt = layout.FromMicros(uint64(max(us, 0)))
		a.Duration = time.Duration(d.Int()) * time.Microsecond
		a.StatusCode = int(d.Int())
		a.Error = d.String()
	}
	return history
}
