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
	odd     int64  // of those, the ones whose number nothing else has: one that is missing may be there under it
	late    int64  // and those that were written after everything else
	missing int64  // events that are surely unfinished, and not there
}

// compare reports on the salvaged file tx, which r has rebuilt.
func (c *census) compare(tx *bolt.Tx, r *rebuilder, damaged int64) SalvageReport {
	l := &loss{census: c, r: r, tx: tx}
	l.takeStock()
	report := SalvageReport{Recovered: l.present.n, Doubtful: l.doubt, Unit: UnitEvents}
	unheard := l.unheard()
	if c.counted() {
		most := max(c.rows-l.certain, 0)
		report.Lost = min(most, max(l.missing-l.odd, most-l.doubt)) + unheard
		report.Estimate = c.stale() || unheard > 0
		return report
	}
	untold, told := l.untold()
	report.Lost = max(l.missing-l.odd, 0) + untold + unheard
	report.Estimate = !c.indexed && (untold > 0 || !c.traces) || c.stale() || unheard > 0
	if !told || report.Estimate && report.Lost < damaged && !r.counted {
		// No number is left, or nothing tells how far they went: fewer than there are damaged pages is no figure to give.
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
		switch f := l.fate(seq); {
		case f == fateNew:
			l.late++
		case f == fateUnfinished && !l.stale():
			l.certain++
		default:
			l.doubt++
			l.weigh(seq, f)
		}
	}
	var looked seqSet
	for _, set := range []*seqSet{&l.events, &l.waiting, &l.dead, &l.traced} {
		for seq := range set.all() {
			if seq < l.next && !looked.has(seq) && !l.present.has(seq) && l.fate(seq) == fateUnfinished {
				l.missing++
			}
			looked.add(seq)
		}
	}
}

// weigh looks closer at an event that is doubtful.
func (l *loss) weigh(seq uint64, f fate) {
	switch {
	case seq >= l.next && seq < l.horizon:
		l.late++
	case seq >= l.next, f == fateFinished:
		l.odd++
	}
}

// unheard counts the numbers that were given out after everything that is sure, and that were not found: with the meta page
// of the last commit some of its own pages may be gone.
func (l *loss) unheard() int64 {
	if !l.known || l.horizon <= l.next {
		return 0
	}
	return max(int64(l.horizon-l.next)-l.late, 0)
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
	highest := l.highest()
	if lowest == 0 {
		return 0, false
	}
	n = l.gaps.numbers(layout.Events, lowest, highest) - l.accounted(done, lowest, highest)
	return max(n, 0), true
}

// highest is the last number that was given out, as far as the counters tell: a key that lies may be far beyond.
func (l *loss) highest() uint64 {
	switch {
	case l.known:
		return l.next - 1 // see unheard
	case l.horizon > 0:
		return l.horizon - 1
	}
	return l.r.counters.nextSeq - 1
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
