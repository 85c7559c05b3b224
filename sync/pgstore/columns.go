package pgstore

import (
	"cmp"
	"slices"
	"time"
)

// A batch travels as one array per column.

// keyArrays name events and their versions.
type keyArrays struct {
	event   []string
	created []time.Time
	version []int64
}

func keysOf(states []*state) (k keyArrays) {
	for _, s := range states {
		k.add(s.EventID, s.CreatedAt, s.Version)
	}
	return k
}

func (k *keyArrays) add(event string, created time.Time, version uint64) {
	k.event, k.created = append(k.event, event), append(k.created, created)
	k.version = append(k.version, int64(min(version, maxVersion)))
}

// maxVersion is what a bigint column takes with room to spare.
const maxVersion = 1 << 62

type queueArrays struct {
	event          []string
	created        []time.Time
	endpoint       []int32
	url, name      []string
	payload        []*string
	status         []string
	attempts, most []int32
	next, done     []*time.Time
	lastError      []*string
	lastStatus     []*int32
	lastMS         []*int32
	lastAt         []*time.Time
	reason         []*string
	deadAt         []*time.Time
	version        []int64
}

func queueColumns(states []*state, ids map[endpointRef]int32, now time.Time) *queueArrays {
	q := &queueArrays{}
	for _, s := range states {
		q.event, q.created = append(q.event, s.EventID), append(q.created, s.CreatedAt)
		q.endpoint = append(q.endpoint, ids[refOf(&s.Row)])
		q.url, q.name = append(q.url, refOf(&s.Row).url), append(q.name, refOf(&s.Row).name)
		q.payload = append(q.payload, payload(s.Payload))
		q.status = append(q.status, s.Status)
		q.attempts, q.most = append(q.attempts, number(s.Attempts)), append(q.most, number(s.MaxAttempts))
		q.next, q.done = append(q.next, momentOrNull(s.NextAttempt)), append(q.done, momentOrNull(s.DeliveredAt))
		q.reason, q.deadAt = append(q.reason, orNull(s.DeadReason)), append(q.deadAt, s.deadAt(now))
		q.version = append(q.version, int64(min(s.Version, maxVersion)))
		q.addLast(s.last)
	}
	return q
}

func (q *queueArrays) addLast(a *Attempt) {
	if a == nil {
		a = &Attempt{}
	}
	q.lastError, q.lastStatus = append(q.lastError, orNull(a.Error)), append(q.lastStatus, a.status())
	q.lastMS, q.lastAt = append(q.lastMS, a.millis()), append(q.lastAt, momentOrNull(a.EndedAt))
}

func (q *queueArrays) args(instance string) []any {
	return []any{
		instance, q.event, q.created, q.endpoint, q.url, q.name, q.payload, q.status, q.attempts, q.most, q.next, q.done,
		q.lastError, q.lastStatus, q.lastMS, q.lastAt, q.reason, q.deadAt, q.version,
	}
}

func (a *Attempt) status() *int32 {
	if a.StatusCode == 0 {
		return nil
	}
	n := number(a.StatusCode)
	return &n
}

func (a *Attempt) millis() *int32 {
	if !a.sample() {
		return nil
	}
	n := millis(a.Duration)
	return &n
}

type attemptArrays struct {
	event    []string
	number   []int32
	at       []time.Time
	endpoint []int32
	ms       []*int32
	status   []*int32
	err      []*string
}

func attemptColumns(rows []Row, ids map[endpointRef]int32) *attemptArrays {
	c := &attemptArrays{}
	for i := range rows {
		a := rows[i].Attempt
		if a == nil {
			continue
		}
		c.event, c.number = append(c.event, text(rows[i].EventID, maxKey)), append(c.number, number(a.Number))
		c.at, c.endpoint = append(c.at, moment(a.EndedAt)), append(c.endpoint, ids[refOf(&rows[i])])
		c.ms, c.status, c.err = append(c.ms, a.millis()), append(c.status, a.status()), append(c.err, orNull(a.Error))
	}
	return c
}

func (c *attemptArrays) args(instance string) []any {
	return []any{instance, c.event, c.number, c.at, c.endpoint, c.ms, c.status, c.err}
}

// seenArrays tell of each endpoint when it last failed and last took something.
type seenArrays struct {
	endpoint         []int32
	name             []string
	failed, accepted []*time.Time
}

type seenKey struct {
	endpoint int32
	name     string
}

func seenColumns(rows []Row, ids map[endpointRef]int32) *seenArrays {
	type times struct{ failed, accepted time.Time }
	seen := make(map[seenKey]*times)
	for i := range rows {
		a := rows[i].Attempt
		if a == nil {
			continue
		}
		key := seenKey{ids[refOf(&rows[i])], refOf(&rows[i]).name}
		t := seen[key]
		if t == nil {
			t = &times{}
			seen[key] = t
		}
		at := &t.failed
		if a.Error == "" {
			at = &t.accepted
		}
		if a.EndedAt.After(*at) {
			*at = a.EndedAt
		}
	}
	keys := make([]seenKey, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b seenKey) int {
		return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.name, b.name))
	})
	c := &seenArrays{}
	for _, key := range keys {
		c.endpoint, c.name = append(c.endpoint, key.endpoint), append(c.name, key.name)
		c.failed, c.accepted = append(c.failed, momentOrNull(seen[key].failed)), append(c.accepted, momentOrNull(seen[key].accepted))
	}
	return c
}

func (c *seenArrays) args(instance string) []any {
	return []any{instance, c.endpoint, c.name, c.failed, c.accepted}
}
