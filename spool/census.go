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
	listed   int64  // so many are in the index of what is due, or dead letters
	lowest   uint64 // of the numbers in that index; 0: it has none
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
			c.list(seq)
		}
	case layout.Dead:
		if seq, ok := layout.Seq(key); ok {
			c.list(seq)
		}
	case layout.Aside:
		c.aside++
	}
}

func (c *census) list(seq uint64) {
	c.listed++
	if c.lowest == 0 || seq < c.lowest {
		c.lowest = seq
	}
}

// nextSeq is the first number that the events counted here do not have.
func (c *census) nextSeq() uint64 {
	if c.known {
		return c.counters.nextSeq
	}
	return math.MaxUint64
}

// compare reports on the salvaged file tx, in which highest is the last number that was ever given out.
//
// The file's own counts and its index say exactly what is missing. Where the counts are gone, it is estimated from the
// numbers that are missing among those that are there; the oldest summary is where that begins, since before it events
// were finished and forgotten. Where no number is left, the damaged pages are counted.
func (c *census) compare(tx *bolt.Tx, highest uint64, damaged int64) SalvageReport {
	events := tx.Bucket(layout.Events.Name())
	report := SalvageReport{Recovered: rowsBetween(events, 0, math.MaxUint64), Unit: UnitEvents}
	before := rowsBetween(events, 0, c.nextSeq()-1)
	report.Lost = max(c.rows-before, c.listed-before, 0)
	if c.counted || damaged == 0 {
		return report
	}
	done := tx.Bucket(layout.Done.Name())
	lowest := lowestOf(firstSeq(events), c.lowest)
	if n := firstSeq(done); n > 0 {
		lowest = n
	}
	if lowest == 0 {
		report.Lost, report.Unit = damaged, UnitPages
		return report
	}
	present := rowsBetween(events, lowest, highest) + rowsBetween(done, lowest, highest) + c.aside
	report.Lost = max(report.Lost, int64(highest-lowest+1)-present)
	return report
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
