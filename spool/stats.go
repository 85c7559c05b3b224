package spool

import (
	"maps"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

func (s *Spool) counts(name string, r *endpointRow) EndpointCounts {
	events := r.pending + r.failed + r.dead
	return EndpointCounts{Endpoint: name, Pending: r.pending, Failed: r.failed, DeadLetter: r.dead, Bytes: r.bytes,
		Full: events > 0 && r.bytes+r.bytes/events > s.cfg.endpointLimit()}
}

// Endpoints returns the counts of every endpoint that has events or had some in the last hour, sorted by name.
func (s *Spool) Endpoints() []EndpointCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.rows))
	}
	list := make([]EndpointCounts, len(s.sorted))
	for i, name := range s.sorted {
		list[i] = s.counts(name, s.rows[name])
	}
	return list
}

// Counts returns the counts of one endpoint; all are zero where it is unknown.
func (s *Spool) Counts(endpoint string) EndpointCounts {
	if row := s.endpointRow(endpoint); row != nil {
		return s.counts(endpoint, row)
	}
	return EndpointCounts{Endpoint: endpoint}
}

// Stats returns a snapshot.
func (s *Spool) Stats() Stats {
	st := s.memoryStats()
	st.Leased = int64(len(s.inFlight()))
	st.OldestPending = s.oldestPending()
	return st
}

func (s *Spool) memoryStats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.counters
	st := Stats{
		FileBytes: s.fileSize, UsedBytes: s.used, FreeBytes: s.free, MaxBytes: s.cfg.MaxBytes,
		HistoryBytes: c.doneBytes + c.outboxBytes, HistoryDropped: c.historyDropped, OutboxRows: c.outboxRows,
		SetAside: c.setAside, SalvageLost: c.salvageLost,
		LastHour: s.minutes.sum(s.now()),
		Full:     s.full, Writable: s.writable && !s.closed,
	}
	st.Pending, st.Failed, st.DeadLetter, st.Delivered = s.total.pending, s.total.failed, s.total.dead, s.total.done
	return st
}

// oldestPending finds when the oldest event was accepted that was never tried. The search goes on where the last one
// ended, so that over its life it passes each event once.
func (s *Spool) oldestPending() time.Time {
	search := s.beginOldest()
	found := search.run()
	search.end(found)
	return found.acceptedAt
}

// oldestSearch is one search, from a place and between two replays.
type oldestSearch struct {
	s       *Spool
	from    uint64
	replays uint64
}

// oldestFound is the first event at or after the search's beginning that is pending; where there is none, the sequence
// number from which to go on, and no time.
type oldestFound struct {
	seq        uint64
	acceptedAt time.Time
}

func (s *Spool) beginOldest() oldestSearch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return oldestSearch{s: s, from: s.oldest, replays: s.replays}
}

func (o oldestSearch) run() oldestFound {
	found := oldestFound{seq: o.from}
	err := o.s.store.view(func(tx *bolt.Tx) error {
		events, dead := tx.Bucket(layout.Events.Name()).Cursor(), tx.Bucket(layout.Dead.Name())
		tried := tx.Bucket(layout.Progress.Name())
		for k, v := events.Seek(layout.SeqKey(o.from)); k != nil; k, v = events.Next() {
			seq, ok := layout.Seq(k)
			if !ok || dead.Get(k) != nil || hasAttempts(seq, tried.Get(k)) {
				found.seq = seq + 1
				continue
			}
			found.seq = seq
			if ev, _, err := decodeEvent(seq, v, eventHead, nil); err == nil {
				found.acceptedAt = ev.AcceptedAt
			}
			return nil
		}
		return nil
	})
	if err != nil {
		return oldestFound{seq: o.from}
	}
	return found
}

// end remembers how far the search came, unless another one was faster or a replay made an event pending meanwhile that
// this one may have passed.
func (o oldestSearch) end(found oldestFound) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if o.s.oldest == o.from && o.s.replays == o.replays {
		o.s.oldest = found.seq
	}
}

func hasAttempts(seq uint64, rec []byte) bool {
	if rec == nil {
		return false
	}
	p, err := decodeProgress(seq, rec)
	return err == nil && p.tried()
}
