package spool

import (
	"context"

	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// kindBuckets says where a record belongs that was found without a name.
var kindBuckets = map[layout.Kind]layout.Bucket{
	layout.KindEvent: layout.Events, layout.KindProgress: layout.Progress, layout.KindDead: layout.Dead,
	layout.KindDone: layout.Done, layout.KindIdem: layout.Idem, layout.KindOutbox: layout.Outbox,
	layout.KindEndpoint: layout.Endpoints, layout.KindState: layout.State, layout.KindMinute: layout.Minutes,
	layout.KindInstance: layout.Meta, layout.KindCounters: layout.Meta, layout.KindRefused: layout.Refused, layout.KindKeys: layout.Meta, layout.KindBlind: layout.Meta,
}

// bySeq tells the buckets whose keys are sequence numbers or indexes.
func bySeq(id layout.Bucket) bool {
	switch id {
	case layout.Events, layout.Progress, layout.Dead, layout.Done, layout.Outbox, layout.Minutes, layout.Refused:
		return true
	}
	return false
}

// taker is what is done with a record that may be needed.
type taker func(layout.Bucket, pagefile.Entry)

// fillGaps looks through the pages that nothing leads to. Such pages also hold what was deleted, and what a transaction
// wrote that never became valid; so a record counts only for a key of which nothing sure was read (census.open), and where
// nothing sure is known of its event that says otherwise. What says that an event is finished comes first: what was
// delivered is not to be delivered again. The payloads come last, in a second pass, since they need not fit into memory.
func (v *salvager) fillGaps(ctx context.Context) error {
	free, err := v.f.FreePages()
	if err != nil {
		free = nil
	}
	passes := []taker{v.keepLatest, v.takeEvent}
	if v.newIDs != nil {
		passes = []taker{v.keepRow, v.takeNewEvent, v.keepKey}
	}
	for len(passes) > 0 {
		_, err = v.f.Scan(ctx, nil, func(e pagefile.Entry) bool {
			if !free.Has(e.Page) {
				v.doubtful(e, passes[0])
			}
			return v.err == nil
		})
		v.putGaps()
		if err != nil || v.err != nil {
			return err
		}
		if passes = passes[1:]; len(passes) == 0 && v.undecoded {
			passes, v.undecoded = append(passes, v.takeUndecoded), false
		}
	}
	return nil
}

func (v *salvager) putGaps() {
	for _, id := range []layout.Bucket{
		layout.Done, layout.Dead, layout.Progress, layout.Idem, layout.Outbox, layout.Endpoints, layout.State,
		layout.Minutes, layout.Refused, layout.Meta,
	} {
		for key, value := range v.gaps[id] {
			if v.missing(id, []byte(key)) {
				v.put(id, []byte(key), value)
			}
		}
		delete(v.gaps, id)
	}
}

// doubtful hands on a record that may be needed. Its place is told by its kind; bare rows have none.
func (v *salvager) doubtful(e pagefile.Entry, take taker) {
	kind, err := layout.KindOf(e.Value)
	if err != nil {
		return
	}
	if kind == layout.KindCounters {
		v.census.noteHorizon(e.Value)
	}
	id := kindBuckets[kind]
	if _, ok := layout.Seq(e.Key); bySeq(id) && !ok {
		return
	}
	if id == layout.Done && v.delivered(e) {
		return
	}
	// The key of an event that was in use may lie, and lead out of the gap.
	if open := v.census.open(id, e.Key) || id == layout.Events && v.torn.Has(e.Page); open && v.missing(id, e.Key) {
		take(id, e)
	}
}

// keepLatest keeps the latest version of a record, payloads apart.
func (v *salvager) keepLatest(id layout.Bucket, e pagefile.Entry) {
	if id == layout.Events {
		return
	}
	if v.gaps[id] == nil {
		v.gaps[id] = make(map[string][]byte)
	}
	if old := v.gaps[id][string(e.Key)]; old == nil || newer(id, e.Key, e.Value, old) {
		v.gaps[id][string(e.Key)] = append([]byte(nil), e.Value...)
	}
}

// takeEvent takes a payload that nothing says is finished. It never changes, so that any version that can be decoded is
// the right one.
func (v *salvager) takeEvent(id layout.Bucket, e pagefile.Entry) {
	seq, _ := layout.Seq(e.Key)
	if id != layout.Events || v.finished(seq, e.Page) {
		return
	}
	if _, _, err := decodeEvent(seq, e.Value, eventHead, nil); err != nil {
		v.undecoded = true
		return
	}
	v.put(id, e.Key, e.Value)
}

// takeUndecoded takes what is left of a payload of which no version can be decoded, so that it is set aside.
func (v *salvager) takeUndecoded(id layout.Bucket, e pagefile.Entry) {
	if seq, _ := layout.Seq(e.Key); id == layout.Events && v.census.fate(seq) != fateFinished {
		v.put(id, e.Key, e.Value)
	}
}

// finished tells that an event that was found on a page is not to be taken. What was in use there was not finished, unless
// there is a record of that: if an index says otherwise, the event's key is what is damaged.
func (v *salvager) finished(seq, page uint64) bool {
	return v.census.fate(seq) == fateFinished && (v.census.ended(seq) || !v.torn.Has(page))
}

// delivered takes a summary of an event that the file has as unfinished: the file is of the time before, for a meta page or
// other pages are. The summary has the event's ID, and it would not be there if the event had not been delivered.
func (v *salvager) delivered(e pagefile.Entry) bool {
	seq, _ := layout.Seq(e.Key)
	if !v.census.events.has(seq) || v.census.done.has(seq) {
		return false
	}
	rec, err := v.w.get(layout.Events, e.Key)
	if err != nil {
		v.err = err
		return false
	}
	ev, _, err := decodeEvent(seq, rec, eventHead, nil)
	sum, errSum := decodeSummary(seq, e.Value)
	if err != nil || errSum != nil || sum.id != ev.ID {
		return false
	}
	v.census.noteDelivered(seq)
	v.put(layout.Done, e.Key, e.Value)
	return true
}

// missing tells that nothing is known that a doubtful record could contradict.
func (v *salvager) missing(id layout.Bucket, key []byte) bool {
	against := []layout.Bucket{id}
	switch id {
	case layout.Events:
		against = append(against, layout.Done)
	case layout.Done, layout.Dead:
		if v.contradicted(id, key) {
			return false
		}
		against = []layout.Bucket{layout.Events, layout.Dead, layout.Done}
	}
	for _, other := range against {
		rec, err := v.w.get(other, key)
		if err != nil {
			v.err = err
		}
		if rec != nil {
			return false
		}
	}
	return true
}

// contradicted tells that an event was neither delivered nor dead, whatever a page says that nothing leads to.
func (v *salvager) contradicted(id layout.Bucket, key []byte) bool {
	seq, _ := layout.Seq(key)
	if id == layout.Done {
		return v.census.fate(seq) == fateUnfinished
	}
	return v.census.waiting.has(seq)
}

// newer tells which of two versions of a row is the later one.
func newer(id layout.Bucket, key, a, b []byte) bool {
	seq, _ := layout.Seq(key)
	switch id {
	case layout.Progress:
		pa, _ := decodeProgress(seq, a)
		pb, _ := decodeProgress(seq, b)
		return pa.version > pb.version
	case layout.Dead:
		da, err := decodeDead(seq, a)
		db, errb := decodeDead(seq, b)
		return err == nil && (errb != nil || da.version > db.version)
	case layout.Minutes:
		return false
	case layout.Meta:
		ca, _ := decodeCounters(a)
		cb, _ := decodeCounters(b)
		return ca.nextSeq > cb.nextSeq
	}
	return false
}
