package spool

import (
	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// loss compares the salvaged file with what the damaged one said of itself.
//
// It is exact, or exact but for the Doubtful ones, where the counts of the endpoints or an index are whole. Where none is,
// it is estimated from the numbers that are in none of the buckets and in a gap; the oldest summary is where that begins,
// since before it events were finished and forgotten. Where no number is left, the damaged pages are counted.
type loss struct {
	*census
	r       *rebuilder
	tx      *bolt.Tx
	present seqSet // events that are there
	certain int64  // of those, the ones that are surely unfinished
	doubt   int64  // and those that may be finished
	missing int64  // events that are surely unfinished, and not there
}

// compare reports on the salvaged file tx, which r has rebuilt.
func (c *census) compare(tx *bolt.Tx, r *rebuilder, damaged int64) SalvageReport {
	l := &loss{census: c, r: r, tx: tx}
	l.takeStock()
	report := SalvageReport{Recovered: l.present.n, Doubtful: l.doubt, Unit: UnitEvents}
	if c.counted() {
		most := max(c.rows-l.certain, 0)
		report.Lost = min(most, max(l.missing, most-l.doubt))
		return report
	}
	untold, told := l.untold()
	report.Lost, report.Estimate = l.missing+untold, !c.indexed && (untold > 0 || !c.traces)
	if !told || report.Estimate && report.Lost == 0 && !r.counted {
		// No number is left, or nothing tells how far they went.
		report.Lost, report.Unit = damaged, UnitPages
	}
	return report
}

// takeStock sorts the events by what is known of them.
func (l *loss) takeStock() {
	cur := l.tx.Bucket(layout.Events.Name()).Cursor()
	for k, _ := cur.First(); k != nil; k, _ = cur.Next() {
		seq, _ := layout.Seq(k)
		l.present.add(seq)
		switch l.fate(seq) {
		case fateUnfinished:
			l.certain++
		case fateUnknown:
			l.doubt++
		}
	}
	var looked seqSet
	for _, set := range []*seqSet{&l.events, &l.waiting, &l.dead, &l.traced} {
		for seq := range set.all() {
			if !looked.has(seq) && !l.present.has(seq) && l.fate(seq) == fateUnfinished {
				l.missing++
			}
			looked.add(seq)
		}
	}
}

// untold counts the numbers of which nothing at all is known: events that are lost, or were finished and left no trace.
// told is false where there is no number from which to begin.
func (l *loss) untold() (n int64, told bool) {
	switch {
	case l.indexed:
		return 0, true
	case l.traces:
		return l.untraced(), true
	}
	done := l.tx.Bucket(layout.Done.Name())
	lowest := lowestOf(l.present.lowest, lowestOf(l.waiting.lowest, l.dead.lowest))
	if first := lowestOf(firstSeq(done), l.r.nameless.lowest); first > 0 {
		lowest = first
	}
	highest := l.r.counters.nextSeq - 1
	if lowest == 0 {
		return 0, false
	}
	n = l.gaps.numbers(layout.Events, lowest, highest) - l.accounted(done, lowest, highest)
	return max(n, 0), true
}

// untraced counts the events that the index of IDs has and nothing else, neither the damaged file nor the new one.
func (l *loss) untraced() (n int64) {
	done := l.tx.Bucket(layout.Done.Name())
	for seq := range l.traced.all() {
		if l.fate(seq) == fateUnknown && !l.present.has(seq) && !l.r.nameless.has(seq) && done.Get(layout.SeqKey(seq)) == nil {
			n++
		}
	}
	return n
}

// accounted counts the numbers within the gaps of the events of which something is known.
func (l *loss) accounted(done *bolt.Bucket, lowest, highest uint64) int64 {
	var known seqSet
	add := func(seq uint64) {
		if seq >= lowest && seq <= highest && l.gaps.has(layout.Events, layout.SeqKey(seq)) {
			known.add(seq)
		}
	}
	c := done.Cursor()
	for k, _ := c.Seek(layout.SeqKey(lowest)); k != nil; k, _ = c.Next() {
		if seq, ok := layout.Seq(k); ok {
			add(seq)
		}
	}
	for _, set := range []*seqSet{&l.present, &l.r.nameless, &l.aside, &l.done, &l.waiting, &l.dead, &l.traced} {
		for seq := range set.all() {
			if set != &l.traced || l.fate(seq) != fateUnknown {
				add(seq)
			}
		}
	}
	return known.n
}

func firstSeq(b *bolt.Bucket) uint64 {
	k, _ := b.Cursor().First()
	seq, _ := layout.Seq(k)
	return seq
}
