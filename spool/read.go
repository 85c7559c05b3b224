package spool

import (
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// reader looks things up within one read transaction. leased is a snapshot of what is out, taken before.
type reader struct {
	s                             *Spool
	ids, events, prog, dead, done *bolt.Bucket
	leased                        map[uint64]bool
}

func (s *Spool) newReader(tx *bolt.Tx, leased map[uint64]bool) *reader {
	return &reader{
		s: s, leased: leased,
		ids:    tx.Bucket(layout.IDs.Name()),
		events: tx.Bucket(layout.Events.Name()),
		prog:   tx.Bucket(layout.Progress.Name()),
		dead:   tx.Bucket(layout.Dead.Name()),
		done:   tx.Bucket(layout.Done.Name()),
	}
}

// Get returns one event. With payload it has headers and body, unless the event was delivered. The error is ErrNotFound
// where the spool has no trace of it.
func (s *Spool) Get(id string, payload bool) (View, error) {
	part := eventHead
	if payload {
		part = eventPayload
	}
	leased := s.leases.seqs()
	var v View
	err := s.store.view(func(tx *bolt.Tx) (err error) {
		r := s.newReader(tx, leased)
		seq, ok := layout.Seq(r.ids.Get(layout.PackID(id)))
		if !ok {
			return ErrNotFound
		}
		v, err = r.bySeq(seq, part)
		return err
	})
	return v, err
}

func (r *reader) bySeq(seq uint64, part eventPart) (View, error) {
	key := layout.SeqKey(seq)
	if rec := r.done.Get(key); rec != nil {
		return r.delivered(seq, rec)
	}
	dead := r.dead.Get(key)
	if dead != nil && part == eventHead {
		return deadView(seq, dead)
	}
	rec := r.events.Get(key)
	if rec == nil {
		return View{}, ErrNotFound
	}
	v, err := r.waiting(seq, rec, part)
	if err == nil && dead != nil {
		var head View
		if head, err = deadView(seq, dead); err == nil {
			v.Progress, v.State = head.Progress, head.State
		}
	}
	return v, err
}

func deadView(seq uint64, rec []byte) (View, error) {
	dl, err := decodeDead(seq, rec)
	if err != nil {
		return View{}, err
	}
	return View{Event: dl.event, Progress: dl.Progress, State: StateDeadLetter, Size: dl.size}, nil
}

func (r *reader) delivered(seq uint64, rec []byte) (View, error) {
	sum, err := decodeSummary(seq, rec)
	if err != nil {
		return View{}, err
	}
	return View{
		Event: Event{
			Seq: seq, ID: sum.id, ExplicitID: sum.explicit, Endpoint: r.s.endpointName(sum.endpoint), Named: sum.named,
			Method: sum.method, AcceptedAt: sum.acceptedAt,
		},
		Progress:    Progress{Attempts: sum.attempts, Charged: sum.charged, Since: sum.acceptedAt, History: sum.history},
		State:       StateDelivered,
		DeliveredAt: sum.deliveredAt,
		Size:        sum.size,
	}, nil
}

// waiting views an event that is not finished.
func (r *reader) waiting(seq uint64, rec []byte, part eventPart) (View, error) {
	ev, size, err := decodeEvent(seq, rec, part)
	if err != nil {
		return View{}, err
	}
	p := initialProgress(ev)
	if prec := r.prog.Get(layout.SeqKey(seq)); prec != nil {
		if p, err = decodeProgress(seq, prec); err != nil {
			return View{}, err
		}
	}
	v := View{Event: *ev, Progress: p.Progress, State: stateOf(&p), Size: size}
	if r.leased[seq] {
		v.State = StateInFlight
	}
	return v, nil
}

// matches applies the conditions of a query to an event.
func (q *Query) matches(v *View) bool {
	at := v.AcceptedAt
	if v.State == StateDeadLetter {
		at = v.DeadAt
	}
	last := lastAttempt(v)
	switch {
	case q.State != 0 && v.State != q.State,
		q.Endpoint != "" && v.Endpoint != q.Endpoint,
		q.Status != 0 && last.StatusCode != q.Status,
		q.Error != "" && last.Error != q.Error,
		!q.Since.IsZero() && at.Before(q.Since),
		!q.Until.IsZero() && !at.Before(q.Until):
		return false
	}
	return true
}

func lastAttempt(v *View) Attempt {
	if len(v.History) == 0 {
		return Attempt{}
	}
	return v.History[len(v.History)-1]
}

// Sample is one attempt, for percentiles.
type Sample struct {
	Endpoint   string
	StartedAt  time.Time
	Duration   time.Duration
	StatusCode int
	Error      string
}

// readStep is how many rows one read transaction looks at: a longer one would keep pages from being used again.
const readStep = 1000

// Samples yields the attempts since a time that are still remembered, in no particular order, until yield returns false.
// yield may take its time.
func (s *Spool) Samples(since time.Time, yield func(Sample) bool) error {
	for _, id := range []layout.Bucket{layout.Done, layout.Dead, layout.Progress} {
		more, err := s.samplesOf(id, since, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (s *Spool) samplesOf(id layout.Bucket, since time.Time, yield func(Sample) bool) (more bool, err error) {
	for from := uint64(0); ; {
		var found []Sample
		next := uint64(0)
		err := s.store.view(func(tx *bolt.Tx) error {
			r := s.newReader(tx, nil)
			next = scanRows(tx.Bucket(id.Name()), from, func(seq uint64, v []byte) {
				found = append(found, r.samples(id, seq, v, since)...)
			})
			return nil
		})
		if err != nil {
			return false, err
		}
		for _, sample := range found {
			if !yield(sample) {
				return false, nil
			}
		}
		if next == 0 {
			return true, nil
		}
		from = next
	}
}

// scanRows hands over up to readStep rows from a sequence number on and returns where to go on; 0: nowhere.
func scanRows(b *bolt.Bucket, from uint64, fn func(seq uint64, v []byte)) (next uint64) {
	c := b.Cursor()
	n := 0
	for k, v := c.Seek(layout.SeqKey(from)); k != nil; k, v = c.Next() {
		seq, ok := layout.Seq(k)
		if !ok {
			continue
		}
		if n++; n > readStep {
			return seq
		}
		fn(seq, v)
	}
	return 0
}

func (r *reader) samples(id layout.Bucket, seq uint64, rec []byte, since time.Time) (list []Sample) {
	var endpoint string
	var history []Attempt
	switch id {
	case layout.Done:
		if v, err := r.delivered(seq, rec); err == nil {
			endpoint, history = v.Endpoint, v.History
		}
	case layout.Dead:
		if v, err := deadView(seq, rec); err == nil {
			endpoint, history = v.Endpoint, v.History
		}
	default:
		p, err := decodeProgress(seq, rec)
		ev, _, everr := decodeEvent(seq, r.events.Get(layout.SeqKey(seq)), eventHead)
		if err == nil && everr == nil {
			endpoint, history = ev.Endpoint, p.History
		}
	}
	for _, a := range history {
		if !a.StartedAt.Before(since) {
			list = append(list, Sample{endpoint, a.StartedAt, a.Duration, a.StatusCode, a.Error})
		}
	}
	return list
}
