package spool

import (
	"math"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// census is what a damaged file says of its own content, wherever that is sure: it tells how much a salvage has not found.
type census struct {
	counters counters
	known    bool   // the counters were found
	counted  bool   // rows of endpoints were found, and
	rows     int64  // so many events are unfinished by their counts
	listed   seqSet // the numbers in the index of what is due, and those of dead letters
	aside    int64  // records that were set aside before
}

// note takes a row into account.
func (c *census) note(id layout.Bucket, key, value []byte) {
	switch id {
	case layout.Meta:
		if string(key) == string(layout.KeyCounters) {
			stored, err := decodeCounters(value)
			c.counters, c.known = stored, err == nil
		}
	case layout.Endpoints:
		if row, err := decodeEndpoint(value); err == nil {
			c.counted = true
			c.rows += row.pending + row.failed + row.dead
		}
	case layout.Due:
		if _, _, seq, ok := layout.ParseDueKey(key); ok {
			c.listed.add(seq)
		}
	case layout.Dead:
		if seq, ok := layout.Seq(key); ok {
			c.listed.add(seq)
		}
	case layout.Aside:
		c.aside++
	}
}

// nextSeq is the first number that the events counted here do not have.
func (c *census) nextSeq() uint64 {
	if c.known {
		return c.counters.nextSeq
	}
	return math.MaxUint64
}

// compare reports on the salvaged file tx, which r has rebuilt.
//
// The file's own counts and its index say exactly what is missing; the index counts as whole if it has all that was found.
// Where the counts are gone and the index is not whole, it is estimated from the numbers that are missing among those that
// are there; the oldest summary is where that begins, since before it events were finished and forgotten. Where no number
// is left, the damaged pages are counted.
func (c *census) compare(tx *bolt.Tx, r *rebuilder, damaged int64) SalvageReport {
	events := tx.Bucket(layout.Events.Name())
	report := SalvageReport{Recovered: rowsBetween(events, 0, math.MaxUint64), Unit: UnitEvents}
	found, unlisted := c.findListed(events)
	report.Lost = max(c.listed.n-found, c.rows-found-unlisted, 0)
	if c.counted || damaged == 0 || c.listed.n > 0 && unlisted == 0 {
		return report
	}
	done := tx.Bucket(layout.Done.Name())
	lowest := lowestOf(firstSeq(events), c.listed.lowest)
	if n := lowestOf(firstSeq(done), r.nameless.lowest); n > 0 {
		lowest = n
	}
	if lowest == 0 {
		report.Lost, report.Unit = damaged, UnitPages
		return report
	}
	highest := r.counters.nextSeq - 1
	present := rowsBetween(events, lowest, highest) + rowsBetween(done, lowest, highest) + r.nameless.n + c.aside
	report.Lost = max(report.Lost, int64(highest-lowest+1)-present)
	if report.Lost == 0 && !r.counted {
		// Nothing tells how far the numbers went.
		report.Lost, report.Unit = damaged, UnitPages
	}
	return report
}

// findListed counts the events that are there and in the index, and those that are there alone.
func (c *census) findListed(events *bolt.Bucket) (found, unlisted int64) {
	cur := events.Cursor()
	for k, _ := cur.First(); k != nil; k, _ = cur.Next() {
		seq, _ := layout.Seq(k)
		switch {
		case c.listed.has(seq):
			found++
		case seq < c.nextSeq():
			unlisted++
		}
	}
	return found, unlisted
}

// seqSet is a set of sequence numbers, which are dense where there are many.
type seqSet struct {
	words  map[uint64]uint64
	n      int64
	lowest uint64 // 0: the set is empty
}

func (s *seqSet) has(seq uint64) bool { return s.words[seq/64]&(1<<(seq%64)) != 0 }

func (s *seqSet) add(seq uint64) {
	if s.has(seq) {
		return
	}
	if s.words == nil {
		s.words = make(map[uint64]uint64)
	}
	s.words[seq/64] |= 1 << (seq % 64)
	s.n++
	s.lowest = lowestOf(s.lowest, seq)
}

// rowsBetween counts the rows of a bucket with numbers from and to included.
func rowsBetween(b *bolt.Bucket, from, to uint64) (n int64) {
	c := b.Cursor()
	for k, _ := c.Seek(layout.SeqKey(from)); k != nil; k, _ = c.Next() {
		if seq, ok := layout.Seq(k); ok && seq > to {
			return n
		}
		n++
	}
	return n
}

func firstSeq(b *bolt.Bucket) uint64 {
	k, _ := b.Cursor().First()
	seq, _ := layout.Seq(k)
	return seq
}

// lowestOf is the lower of two numbers of which 0 means none.
func lowestOf(a, b uint64) uint64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
