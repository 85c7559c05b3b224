package spool

import (
	"fmt"
	"time"

	"postern/spool/internal/layout"
)

// keptAttempts is how many of the last attempts an event keeps beside its first.
const keptAttempts = 20

// progress is Progress with what only the spool needs.
type progress struct {
	Progress
	version uint64 // of the event's outbox rows: 1 is its acceptance
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
	return e.Record()
}

func decodeProgress(seq uint64, rec []byte) (progress, error) {
	fields, err := layout.Fields(layout.KindProgress, rec)
	if err != nil {
		return progress{}, fmt.Errorf("progress of event %d: %w", seq, err)
	}
	d := layout.NewDecoder(string(fields))
	p := getProgress(d)
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
	e.Bool(p.Answer != nil)
	if p.Answer != nil {
		e.Int(int64(p.Answer.StatusCode))
		e.String(p.Answer.Location)
		e.Bytes(p.Answer.Body)
	}
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
	if d.Bool() {
		p.Answer = &Answer{StatusCode: int(d.Int()), Location: d.String(), Body: d.Bytes()}
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
