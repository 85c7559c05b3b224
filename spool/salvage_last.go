package spool

import (
	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// Where one meta page is gone and everything else is whole, the other one leads to the state before the last commit, and
// that is sure. What the last commit added stands on pages that nothing leads to, among whatever was deleted long ago. Its
// numbers tell it apart: the state before had not given them out. What it delivered has left a summary (salvager.delivered). What
// else it changed or removed cannot be told apart; so an event that a person deleted with it is sent after all.

// keepRow keeps the rows that the last commit added beside events.
func (v *salvager) keepRow(id layout.Bucket, e pagefile.Entry) {
	if index, ok := layout.Seq(e.Key); ok && id == layout.Outbox && index >= v.census.counters.nextOutbox {
		v.keepLatest(id, e)
	}
}

// takeNewEvent takes the events that the last commit added.
func (v *salvager) takeNewEvent(id layout.Bucket, e pagefile.Entry) {
	seq, _ := layout.Seq(e.Key)
	if id != layout.Events || seq < v.census.counters.nextSeq {
		return
	}
	ev, _, err := decodeEvent(seq, e.Value, eventHead, nil)
	if err != nil || v.newIDs[ev.ID] {
		return // the same event, left by a try to commit that failed
	}
	v.newIDs[ev.ID] = true
	v.put(id, e.Key, e.Value)
}

// keepKey keeps the keys of those events.
func (v *salvager) keepKey(id layout.Bucket, e pagefile.Entry) {
	if id != layout.Idem {
		return
	}
	if entry, err := decodeIdem(e.Value); err == nil && v.newIDs[entry.id] {
		v.keepLatest(id, e)
	}
}
