package spool

import (
	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// reader looks things up within one read transaction. inFlight is a snapshot, taken before.
type reader struct {
	s                             *Spool
	ids, events, prog, dead, done *bolt.Bucket
	inFlight                      map[uint64]bool
}

func (s *Spool) newReader(tx *bolt.Tx, inFlight map[uint64]bool) *reader {
	return &reader{
		s: s, inFlight: inFlight,
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
	part := eventTarget
	if payload {
		part = eventPayload
	}
	inFlight := s.inFlight()
	var v View
	err := s.store.view(func(tx *bolt.Tx) (err error) {
		r := s.newReader(tx, inFlight)
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
	if dead != nil && part <= eventTarget {
		return r.deadView(seq, dead, part)
	}
	rec := r.events.Get(key)
	if rec == nil {
		return View{}, ErrNotFound
	}
	v, err := r.waiting(seq, rec, part)
	if err == nil && dead != nil {
		var head View
		if head, err = r.deadView(seq, dead, part); err == nil {
			v.Progress, v.State = head.Progress, head.State
		}
	}
	return v, err
}

// deadView views a dead letter without headers and body, and its answer only where part is the payload. Where the target is
// sealed it is with the event.
func (r *reader) deadView(seq uint64, rec []byte, part eventPart) (View, error) {
	dl, err := decodeDead(seq, rec)
	if err != nil {
		return View{}, err
	}
	if dl.event.Named && dl.event.Target == "" {
		ev, _, err := decodeEvent(seq, r.events.Get(layout.SeqKey(seq)), eventTarget, r.s.ring())
		if err != nil {
			return View{}, err
		}
		dl.event.Target = listedTarget(ev)
	}
	if part == eventPayload {
		if err := dl.openAnswer(seq, r.s.ring()); err != nil {
			return View{}, err
		}
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
	ev, size, err := decodeEvent(seq, rec, part, r.s.ring())
	if err != nil {
		return View{}, err
	}
	p := initialProgress(ev)
	if prec := r.prog.Get(layout.SeqKey(seq)); prec != nil {
		if p, err = decodeProgress(seq, prec); err != nil {
			return View{}, err
		}
	}
	if part == eventPayload {
		if err := p.openAnswer(seq, r.s.ring()); err != nil {
			return View{}, err
		}
	}
	v := View{Event: *ev, Progress: p.Progress, State: stateOf(&p), Size: size}
	if r.inFlight[seq] {
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
		q.Error != "" && last.Error != q.Error && v.DeadReason != q.Error,
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
