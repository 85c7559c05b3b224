package spool

import (
	"bytes"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// leaseTable is the set of events that are out. It lives in memory alone: a crash gives every event back.
type leaseTable struct {
	mu   sync.Mutex // guards held
	held map[uint64]heldLease
}

type heldLease struct {
	lease    *Lease
	finished bool // its result waits for the disk
}

func (lt *leaseTable) has(seq uint64) bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	_, out := lt.held[seq]
	return out
}

func (lt *leaseTable) add(leases []*Lease) {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	for _, l := range leases {
		lt.held[l.Event.Seq] = heldLease{lease: l}
	}
}

func (lt *leaseTable) remove(seqs ...uint64) {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	for _, seq := range seqs {
		delete(lt.held, seq)
	}
}

// end marks a lease as finished and tells whether it was held: ending one twice does nothing.
func (lt *leaseTable) end(l *Lease) bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	h := lt.held[l.Event.Seq]
	if h.lease != l || h.finished {
		return false
	}
	h.finished = true
	lt.held[l.Event.Seq] = h
	return true
}

// giveBack removes a lease that was not finished.
func (lt *leaseTable) giveBack(l *Lease) {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	if h := lt.held[l.Event.Seq]; h.lease == l && !h.finished {
		delete(lt.held, l.Event.Seq)
	}
}

// seqs is a snapshot of what is out and passes a test; nil passes all.
func (lt *leaseTable) seqs(test func(uint64) bool) map[uint64]bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	out := make(map[uint64]bool, len(lt.held))
	for seq := range lt.held {
		if test == nil || test(seq) {
			out[seq] = true
		}
	}
	return out
}

// inFlight is a snapshot of the events that people are to see as in flight.
func (s *Spool) inFlight() map[uint64]bool { return s.leases.seqs(s.cfg.Running) }

// isInFlight is the same for one event.
func (s *Spool) isInFlight(seq uint64) bool {
	return s.leases.has(seq) && (s.cfg.Running == nil || s.cfg.Running(seq))
}

// Release gives an event back untried: it stays due. Nothing is written.
func (s *Spool) Release(l *Lease) { s.leases.giveBack(l) }

// pick is an event chosen for a lease, before its record is read.
type pick struct {
	seq   uint64
	due   time.Time
	lease *Lease
}

// Lease hands out up to max events of an endpoint that are due at now and not out already, the longest due first. Their
// records take at most maxBytes together, but one is handed out whatever its size. next tells when the first event that
// remains is due; zero means that none remains. An event whose record is damaged is set aside and left out.
func (s *Spool) Lease(endpoint string, now time.Time, max int, maxBytes int64) (leases []*Lease, next time.Time, err error) {
	s.sawTime(now)
	row := s.endpointRow(endpoint)
	if row == nil || max <= 0 {
		return nil, time.Time{}, nil
	}
	tx, end, chosen, err := s.pickDue(row.id, leaseLimit{now: now, max: max, maxBytes: maxBytes})
	if err != nil {
		return nil, time.Time{}, err
	}
	defer end()
	err = s.store.guard(func() error {
		leases = s.readPicks(tx, chosen.picks)
		return nil
	})
	if err != nil {
		s.releasePicks(chosen.picks)
		return nil, time.Time{}, err
	}
	return leases, chosen.next, nil
}

type leaseLimit struct {
	now      time.Time
	max      int
	maxBytes int64
}

// choice is what was reserved, and when the first event that remains is due.
type choice struct {
	picks []pick
	next  time.Time
}

// pickDue chooses and reserves. The transaction begins while the table is locked: what has left the table is then
// certainly gone from the index that the transaction sees.
func (s *Spool) pickDue(id uint32, limit leaseLimit) (tx *bolt.Tx, end func(), chosen choice, err error) {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	tx, end, err = s.store.begin()
	if err != nil {
		return nil, nil, choice{}, err
	}
	err = s.store.guard(func() error {
		chosen.picks, chosen.next = s.scanDue(tx, id, limit)
		return nil
	})
	if err != nil {
		end()
		return nil, nil, choice{}, err
	}
	for _, p := range chosen.picks {
		s.leases.held[p.seq] = heldLease{lease: p.lease}
	}
	return tx, end, chosen, nil
}

// scanDue runs with the lease table locked.
func (s *Spool) scanDue(tx *bolt.Tx, id uint32, limit leaseLimit) (picks []pick, next time.Time) {
	events := tx.Bucket(layout.Events.Name())
	c := tx.Bucket(layout.Due.Name()).Cursor()
	prefix := layout.DuePrefix(nil, id)
	var bytesTaken int64
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		_, due, seq, ok := layout.ParseDueKey(k)
		if _, out := s.leases.held[seq]; !ok || out {
			continue
		}
		size := int64(len(events.Get(layout.SeqKey(seq))))
		full := len(picks) >= limit.max || len(picks) > 0 && bytesTaken+size > limit.maxBytes
		if due.After(limit.now) || full {
			return picks, due
		}
		bytesTaken += size
		picks = append(picks, pick{seq: seq, due: due, lease: &Lease{}})
	}
	return picks, time.Time{}
}

func (s *Spool) releasePicks(picks []pick) {
	for _, p := range picks {
		s.leases.remove(p.seq)
	}
}

// readPicks turns picks into leases. What cannot be read is set aside; it stays reserved until that is done.
func (s *Spool) readPicks(tx *bolt.Tx, picks []pick) []*Lease {
	leases := make([]*Lease, 0, len(picks))
	for _, p := range picks {
		ev, _, prog, err := readWaiting(tx, p.seq, eventPayload, s.ring())
		if err != nil {
			s.setAside(p, err)
			continue
		}
		p.lease.Event, p.lease.Progress, p.lease.version = ev, prog.Progress, prog.version
		p.lease.Progress.NextAttempt = p.due
		leases = append(leases, p.lease)
	}
	return leases
}

// readWaiting reads part of an event that waits; size is that of its body. ring may be nil for its head.
func readWaiting(tx *bolt.Tx, seq uint64, part eventPart, ring *keyring.Ring) (ev *Event, size int64, p progress, err error) {
	key := layout.SeqKey(seq)
	ev, size, err = decodeEvent(seq, tx.Bucket(layout.Events.Name()).Get(key), part, ring)
	if err != nil {
		return nil, 0, progress{}, err
	}
	rec := tx.Bucket(layout.Progress.Name()).Get(key)
	if rec == nil {
		return ev, size, initialProgress(ev), nil
	}
	p, err = decodeProgress(seq, rec)
	return ev, size, p, err
}
