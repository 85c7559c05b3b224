package pgstore

import (
	"cmp"
	"slices"
	"time"
)

// eventKey names an event of one instance.
type eventKey struct {
	id        string
	createdAt int64
}

// state is an event after all rows of a batch: the latest version's state, with the last attempt and payload seen.
type state struct {
	Row
	last  *Attempt // of all versions in the batch
	tried uint64   // the version that it belongs to
}

// fold keeps one state per event, in order of key, so that two batches never lock rows in different orders. Bodies of earlier
// versions count where keepBodies says so.
func fold(rows []Row, keepBodies bool) (live, deleted []*state) {
	states := make(map[eventKey]*state, len(rows))
	for i := range rows {
		r := &rows[i]
		key := eventKey{text(r.EventID, maxKey), moment(r.CreatedAt).UnixMicro()}
		s := states[key]
		if s == nil {
			s = &state{}
			states[key] = s
		}
		s.merge(r, keepBodies)
		s.EventID, s.CreatedAt = key.id, moment(r.CreatedAt)
	}
	for _, s := range states {
		switch {
		case s.Status == "":
			deleted = append(deleted, s)
		case known(s.Status): // a state that only a newer Postern knows is left out, its attempts are not
			live = append(live, s)
		}
	}
	slices.SortFunc(live, byKey)
	slices.SortFunc(deleted, byKey)
	return live, deleted
}

func byKey(a, b *state) int {
	return cmp.Or(cmp.Compare(a.EventID, b.EventID), a.CreatedAt.Compare(b.CreatedAt))
}

// merge takes another version of the same event. The latest one decides; the last attempt, and the payload where bodies are
// kept, are taken from whichever has them.
func (s *state) merge(r *Row, keepBodies bool) {
	if r.Attempt != nil && r.Version >= s.tried {
		s.last, s.tried = r.Attempt, r.Version
	}
	body := s.Payload
	if r.Version >= s.Version {
		s.Row = *r
	}
	if !keepBodies {
		return
	}
	if s.Payload == nil {
		s.Payload = body
	}
	if s.Payload == nil {
		s.Payload = r.Payload
	}
}

// deadAt is when the event was given up, as far as it shows: as it was told, else the end of its last attempt, else now by
// our clock.
func (s *state) deadAt(now time.Time) *time.Time {
	switch {
	case s.Status != statusDead:
		return nil
	case !s.DeadAt.IsZero():
		return momentOrNull(s.DeadAt)
	case s.Attempt != nil:
		return momentOrNull(s.Attempt.EndedAt)
	}
	return momentOrNull(now)
}
