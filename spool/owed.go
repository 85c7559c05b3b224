package spool

// An event that waits will need room of its own when its attempts are recorded, and it will need it when the spool is
// fullest: while its receiver is down. So an acceptance books that room too, and admits nothing that would take it from
// the events that are there. What is booked is for a slim record: where no more than that is left, a result leaves out the
// answer and every attempt between the first and the last.

const (
	// owedPending is what the results of an event that was never tried take at least: a slim progress record with its place
	// on a page, or the record of a dead letter with a target of common length instead.
	owedPending = 192
	// owedFailed is what is left of that once it was tried: it may yet become a dead letter.
	owedFailed = 96
	// slimBytes is the size up to which a record of progress counts as slim.
	slimBytes = 128
)

// owed is what the results of all waiting events will take.
func (s *Spool) owed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total.pending*owedPending + s.total.failed*owedFailed
}

// slim leaves out of a result what there is no room for.
func (t *txn) slim(p *progress) {
	fat := int64(len(encodeProgress(p))) - slimBytes
	if fat <= 0 {
		return
	}
	if t.room.fits(fat) == nil {
		t.room.taken += fat
		return
	}
	p.Answer, p.sealed = nil, nil
	if n := len(p.History); n > 2 {
		p.History = []Attempt{p.History[0], p.History[n-1]}
	}
}

// spareResults drops history where it has come to use what is owed to results.
func (t *txn) spareResults() {
	if r := t.room; t.results > 0 && r.space.used()+r.taken+r.reserve > r.maxBytes {
		t.giveWay(int64(t.results) * slimBytes)
	}
}
