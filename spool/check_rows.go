package spool

import (
	"postern/spool/internal/layout"
)

func (c *checker) event(seq uint64, v []byte) {
	c.sawSeq(seq)
	key := layout.SeqKey(seq)
	ev, _, err := decodeEvent(seq, v, eventHead)
	if err != nil {
		c.problem("%v", err)
		return
	}
	c.idLeadsTo(ev.ID, seq)
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
	if _, err := decodeOutboxRow(index, v); err != nil {
		c.problem("%v", err)
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
