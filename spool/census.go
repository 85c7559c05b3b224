package spool

import (
	"math"
	"slices"

	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// census is what a damaged file says of its own events, wherever that is sure: whether one may be taken that was found on
// a page which nothing leads to, and in the end how many are lost.
type census struct {
	counters counters
	known    bool // the counters were found
	// older tells that the last commit's meta page is gone: all this is of the state before it.
	older  bool
	rows   int64 // so many events are unfinished by the counts of the endpoints
	broken bool  // one of those counts cannot be read

	// The numbers of events, as the buckets have them.
	events  seqSet
	waiting seqSet // by the indexes of what is due and what expires, and by what was recorded of attempts
	dead    seqSet
	done    seqSet
	aside   seqSet // set aside before
	traced  seqSet // by the index of IDs, which has unfinished and delivered ones, and those that were set aside

	// What follows is set by settle.
	gaps    *gaps
	indexed bool   // waiting and dead have every unfinished event, and nothing contradicts them
	traces  bool   // traced has every event, and nothing contradicts it
	next    uint64 // the first number that no event counted here has
	// horizon is the highest such number by the counters on pages that nothing leads to. Where it is higher than next, all
	// this is of an earlier time: what was written since was lost, or it is from a commit that failed.
	horizon uint64
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
		row, err := decodeEndpoint(value)
		if err != nil {
			c.broken = true
			return
		}
		c.rows += row.pending + row.failed + row.dead
	case layout.Due:
		if _, _, seq, ok := layout.ParseDueKey(key); ok {
			c.waiting.add(seq)
		}
	case layout.Expiry:
		if _, seq, ok := layout.ParseExpiryKey(key); ok {
			c.waiting.add(seq)
		}
	case layout.IDs:
		if seq, ok := layout.Seq(value); ok {
			c.traced.add(seq)
		}
	default:
		c.noteSeq(id, key)
	}
}

func (c *census) noteSeq(id layout.Bucket, key []byte) {
	set := map[layout.Bucket]*seqSet{
		layout.Events: &c.events, layout.Progress: &c.waiting, layout.Dead: &c.dead, layout.Done: &c.done, layout.Aside: &c.aside,
	}[id]
	if seq, ok := layout.Seq(key); ok && set != nil {
		set.add(seq)
	}
}

// noteHorizon takes counters into account that were found on a page which nothing leads to.
func (c *census) noteHorizon(value []byte) {
	if stray, err := decodeCounters(value); err == nil {
		c.horizon = max(c.horizon, stray.nextSeq)
	}
}

// noteDelivered takes into account that an event was delivered which the counts have as unfinished.
func (c *census) noteDelivered(seq uint64) {
	c.done.add(seq)
	c.rows--
}

// settle draws the conclusions, when everything was noted that is sure.
func (c *census) settle(walk *pagefile.Report, older bool) {
	c.gaps, c.older = gapsOf(walk), older
	c.indexed = c.gaps.whole(layout.Due) && c.gaps.whole(layout.Dead) && c.agrees(&c.waiting) && c.agrees(&c.dead) && c.lists(&c.waiting, &c.dead)
	c.traces = c.gaps.whole(layout.IDs) && c.agrees(&c.traced) && c.lists(&c.traced)
	switch {
	case c.known:
		c.next = c.counters.nextSeq
	case c.older:
		for _, set := range []*seqSet{&c.events, &c.waiting, &c.dead, &c.done, &c.traced} {
			for seq := range set.all() {
				c.next = max(c.next, seq+1)
			}
		}
	default:
		c.next = math.MaxUint64
	}
}

// agrees tells that an index names no event that would have to be there and is not. Its keys have no checksum: a flipped
// bit names another event and leaves no other trace. Only the index of IDs has finished ones.
func (c *census) agrees(index *seqSet) bool {
	for seq := range index.all() {
		key := layout.SeqKey(seq)
		if c.events.has(seq) || c.gaps.has(layout.Events, key) {
			continue
		}
		if index != &c.traced || !c.done.has(seq) && !c.aside.has(seq) && !c.gaps.has(layout.Done, key) && !c.gaps.has(layout.Aside, key) {
			return false
		}
	}
	return true
}

// lists tells that every event that is there is in one of the indexes.
func (c *census) lists(indexes ...*seqSet) bool {
	for seq := range c.events.all() {
		if !slices.ContainsFunc(indexes, func(index *seqSet) bool { return index.has(seq) }) {
			return false
		}
	}
	return true
}

// stale tells that the file is of an earlier time than some of its pages, although no meta page is missing.
func (c *census) stale() bool { return !c.older && c.known && c.horizon > c.next }

// counted tells that the counts of the endpoints are all there.
func (c *census) counted() bool { return c.gaps.whole(layout.Endpoints) && !c.broken }

// fate is what is sure of an event.
type fate int

const (
	fateUnknown    fate = iota
	fateUnfinished      // it waits or is a dead letter
	fateFinished        // it was delivered, deleted or set aside
	fateNew             // the last commit may have added it: the state before says nothing of it
)

// fate goes by the records first. The index of IDs tells what is unfinished where no summary can be missing.
func (c *census) fate(seq uint64) fate {
	key := layout.SeqKey(seq)
	switch {
	case c.done.has(seq) && c.events.has(seq):
		return fateUnknown // one of their keys lies, or is of another time
	case c.ended(seq):
		return fateFinished
	case c.events.has(seq), c.named(seq) && c.gaps.has(layout.Events, key):
		return fateUnfinished
	case c.named(seq) && (c.traced.has(seq) || !c.gaps.whole(layout.IDs)):
		return fateUnknown // it should have been there
	case seq >= c.next && c.older && c.known:
		return fateNew
	case seq >= c.next:
		return fateUnknown // written later than all this, or by a commit that failed, or under a key that lies
	case c.endless(seq):
		if !c.gaps.has(layout.Events, key) {
			return fateUnknown
		}
		return fateUnfinished
	case c.stale():
		return fateUnknown // the indexes may be of another time than the events
	case c.indexed, c.traces && !c.traced.has(seq):
		return fateFinished
	}
	return fateUnknown
}

// named tells that something says of an event that it waits or is a dead letter.
func (c *census) named(seq uint64) bool { return c.waiting.has(seq) || c.dead.has(seq) }

// ended tells that there is a record of an event's end.
func (c *census) ended(seq uint64) bool { return c.done.has(seq) || c.aside.has(seq) }

// endless tells that an event was accepted, and that no record of its end is there or can be missing.
func (c *census) endless(seq uint64) bool {
	key := layout.SeqKey(seq)
	return c.traced.has(seq) && !c.ended(seq) && !c.gaps.has(layout.Done, key) && !c.gaps.has(layout.Aside, key)
}

// open tells that a record may be what the file had under this key, although nothing sure leads to it.
func (c *census) open(id layout.Bucket, key []byte) bool {
	if c.gaps.has(id, key) {
		return true
	}
	seq, ok := layout.Seq(key)
	switch {
	case id == layout.Events && ok && (c.named(seq) || c.endless(seq)):
		return !c.events.has(seq) // it should have been there
	case id == layout.Events && c.stale():
		return ok && seq >= c.next
	case !c.older:
		return false
	case id == layout.Events:
		return ok && seq >= c.next
	case id == layout.Outbox:
		return ok && c.known && seq >= c.counters.nextOutbox
	}
	return id == layout.Idem // one without its event goes again, see rebuilder.idem
}
