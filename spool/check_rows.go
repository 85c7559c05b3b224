package spool

import (
	"maps"
	"slices"
	"strings"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

func (c *checker) event(seq uint64, v []byte) {
	c.sawSeq(seq)
	key := layout.SeqKey(seq)
	ev, _, err := decodeEvent(seq, v, eventHead, nil)
	if err != nil {
		c.problem("%v", err)
		return
	}
	c.idLeadsTo(ev.ID, seq)
	c.sealed(layout.Events, seq, v)
	if c.b[layout.Done].Get(key) != nil {
		c.problem("event %d is delivered and still there", seq)
	}
	if c.b[layout.Dead].Get(key) != nil {
		c.report.DeadLetter++
		c.count(ev.Endpoint).count(StateDeadLetter, 1, eventBytes(v))
		return
	}
	p := initialProgress(ev)
	if rec := c.b[layout.Progress].Get(key); rec != nil {
		if p, err = decodeProgress(seq, rec); err != nil {
			return // reported with the progress
		}
	}
	c.waiting(ev, &p, v)
}

func (c *checker) waiting(ev *Event, p *progress, rec []byte) {
	c.count(ev.Endpoint).count(stateOf(p), 1, eventBytes(rec))
	if p.tried() {
		c.report.Failed++
	} else {
		c.report.Pending++
	}
	row := c.rows[ev.Endpoint]
	if row == nil {
		c.problem("the endpoint of event %d is unknown", ev.Seq)
		return
	}
	c.due++
	if at, ok := deadline(ev, p.Since); ok && c.b[layout.Expiry].Get(layout.ExpiryKey(at, ev.Seq)) == nil {
		c.problem("event %d has a TTL and never expires", ev.Seq)
	}
	if c.b[layout.Due].Get(layout.DueKey(row.id, p.NextAttempt, ev.Seq)) == nil {
		c.problem("event %d waits and is never due", ev.Seq)
	}
}

func (c *checker) dead(seq uint64, v []byte) {
	key := layout.SeqKey(seq)
	if _, err := decodeDead(seq, v); err != nil {
		c.problem("%v", err)
	} else {
		c.sealed(layout.Dead, seq, v)
	}
	if c.b[layout.Events].Get(key) == nil {
		c.problem("dead letter %d has no payload", seq)
	}
	if c.b[layout.Progress].Get(key) != nil {
		c.problem("dead letter %d has progress", seq)
	}
}

func (c *checker) progress(seq uint64, v []byte) {
	if _, err := decodeProgress(seq, v); err != nil {
		c.problem("%v", err)
	} else {
		c.sealed(layout.Progress, seq, v)
	}
	if c.b[layout.Events].Get(layout.SeqKey(seq)) == nil {
		c.problem("the progress of event %d has no event", seq)
	}
}

func (c *checker) done(seq uint64, v []byte) {
	c.sawSeq(seq)
	c.seen.doneBytes += rowBytes(layout.SeqKey(seq), v)
	sum, err := decodeSummary(seq, v)
	if err != nil {
		c.problem("%v", err)
		return
	}
	c.report.Delivered++
	c.idLeadsTo(sum.id, seq)
	c.count(c.names[sum.endpoint]).count(StateDelivered, 1, 0)
}

func (c *checker) outbox(index uint64, v []byte) {
	c.report.OutboxRows++
	c.seen.outboxRows++
	c.seen.outboxBytes += rowBytes(layout.SeqKey(index), v)
	if _, err := splitRow(index, v); err != nil {
		c.problem("%v", err)
	} else {
		c.sealed(layout.Outbox, index, v)
	}
	if index >= c.stored.nextOutbox {
		c.problem("outbox row %d has a number that is given out next", index)
	}
}

func (c *checker) keys() {
	_ = c.b[layout.Idem].ForEach(func(k, v []byte) error {
		c.seen.idemBytes += idemBytes(v)
		entry, err := decodeIdem(v)
		if err != nil {
			c.problem("%v", err)
		} else if c.b[layout.IdemQueue].Get(idemQueueKey(entry.at, k)) == nil {
			c.problem("a remembered key is never forgotten")
		}
		return nil
	})
}

// sealed notes the key of a row and, where it is there, opens what it sealed.
func (c *checker) sealed(id layout.Bucket, seq uint64, v []byte) {
	key, ok := keyOf(id, seq, v)
	if !ok {
		return
	}
	c.needs[key] = true
	if key == keyring.Plain || !c.ring.Has(key) {
		return
	}
	if err := openSealed(id, seq, v, c.ring); err != nil {
		c.problem("%v", err)
	}
}

// openSealed opens every sealed part of a row.
func openSealed(id layout.Bucket, seq uint64, v []byte, ring *keyring.Ring) (err error) {
	switch id {
	case layout.Events:
		_, _, err = decodeEvent(seq, v, eventPayload, ring)
	case layout.Progress:
		var p progress
		if p, err = decodeProgress(seq, v); err == nil {
			err = p.openAnswer(seq, ring)
		}
	case layout.Dead:
		var dl *deadLetter
		if dl, err = decodeDead(seq, v); err == nil {
			err = dl.openAnswer(seq, ring)
		}
	case layout.Outbox:
		_, err = decodeOutboxRow(seq, v, ring)
	case layout.Refused:
		_, err = decodeRefused(seq, v, ring)
	}
	return err
}

// noted compares the keys that were met with the note of them, which may have more.
func (c *checker) noted() {
	ids, err := decodeKeys(c.b[layout.Meta].Get(layout.KeyKeys))
	if err != nil {
		c.problem("%v", err)
		return
	}
	if rec := c.b[layout.Meta].Get(layout.KeyBlind); rec != nil {
		if stamp, _, err := splitBlind(rec); err != nil {
			c.problem("%v", err)
		} else if stamp.KeyID() != keyring.Plain {
			c.needs[stamp.KeyID()] = true
		}
	}
	for id := range c.needs {
		if !slices.Contains(ids, id) {
			c.problem("records are encrypted with the key %s, which is not noted", id)
		}
	}
	c.report.Keys = keyNames(slices.SortedFunc(maps.Keys(c.needs), func(a, b keyring.KeyID) int { return strings.Compare(a.String(), b.String()) }))
}
