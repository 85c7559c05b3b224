package spool

import (
	"sort"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

func (r *endpointRow) counts(name string) EndpointCounts {
	return EndpointCounts{Endpoint: name, Pending: r.pending, Failed: r.failed, DeadLetter: r.dead, Bytes: r.bytes}
}

// Endpoints returns the counts of every endpoint that has events or had some in the last hour, sorted by name.
func (s *Spool) Endpoints() []EndpointCounts {
	rows := s.endpointRows()
	list := make([]EndpointCounts, 0, len(rows))
	for name, row := range rows {
		list = append(list, row.counts(name))
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Endpoint < list[j].Endpoint })
	return list
}

// Counts returns the counts of one endpoint; all are zero where it is unknown.
func (s *Spool) Counts(endpoint string) EndpointCounts {
	if row := s.endpointRow(endpoint); row != nil {
		return row.counts(endpoint)
	}
	return EndpointCounts{Endpoint: endpoint}
}

// Stats returns a snapshot.
func (s *Spool) Stats() Stats {
	st := s.memoryStats()
	st.Leased = int64(s.leases.len())
	st.OldestPending = s.oldestPending()
	return st
}

func (s *Spool) memoryStats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.counters
	st := Stats{
		FileBytes: s.fileSize, UsedBytes: s.used,
		HistoryBytes: c.doneBytes + c.outboxBytes, HistoryDropped: c.historyDropped, OutboxRows: c.outboxRows,
		SetAside: c.setAside, SalvageLost: c.salvageLost,
		LastHour: s.minutes.sum(s.now()),
		Full:     s.full, Writable: s.writable && !s.closed,
	}
	for _, row := range s.rows {
		st.Pending += row.pending
		st.Failed += row.failed
		st.DeadLetter += row.dead
		st.Delivered += row.done
	}
	return st
}

// oldestPending finds when the oldest event was accepted that was never tried. The search goes on where the last one
// ended, so that over its life it passes each event once.
func (s *Spool) oldestPending() (at time.Time) {
	s.mu.Lock()
	from := s.oldest
	s.mu.Unlock()
	found := from
	err := s.store.view(func(tx *bolt.Tx) error {
		events, dead := tx.Bucket(layout.Events.Name()).Cursor(), tx.Bucket(layout.Dead.Name())
		tried := tx.Bucket(layout.Progress.Name())
		for k, v := events.Seek(layout.SeqKey(from)); k != nil; k, v = events.Next() {
			seq, ok := layout.Seq(k)
			if !ok || dead.Get(k) != nil || hasAttempts(seq, tried.Get(k)) {
				found = seq + 1
				continue
			}
			found = seq
			if ev, _, err := decodeEvent(seq, v, eventHead); err == nil {
				at = ev.AcceptedAt
			}
			return nil
		}
		return nil
	})
	if err != nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oldest == from { // a replay may have set it back meanwhile
		s.oldest = found
	}
	return at
}

func hasAttempts(seq uint64, rec []byte) bool {
	if rec == nil {
		return false
	}
	p, err := decodeProgress(seq, rec)
	return err == nil && p.tried()
}
