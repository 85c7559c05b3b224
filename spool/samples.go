package spool

import (
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

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
		if dl, err := decodeDead(seq, rec); err == nil {
			endpoint, history = dl.event.Endpoint, dl.History
		}
	default:
		p, err := decodeProgress(seq, rec)
		ev, _, everr := decodeEvent(seq, r.events.Get(layout.SeqKey(seq)), eventHead, nil)
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
