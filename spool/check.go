package spool

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// Report is what Check found.
type Report struct {
	Pending, Failed, DeadLetter, Delivered int64
	OutboxRows                             int64
	SetAside                               int64
	// Keys names the keys that records are encrypted with; "none" stands for records that are not encrypted.
	Keys []string
	// Problems says what does not hold, one sentence each, at most maxProblems of them. Empty: all is well.
	Problems []string
}

// maxProblems keeps the report readable: one fault often shows in many rows.
const maxProblems = 50

// Check looks through a spool without changing it: every page, every record, and that the indexes and counts agree with
// the records. What is wrong is in the report; the error says why nothing could be looked at. Encrypted parts are opened
// where their key is given. No process may have the directory open.
func Check(dir string, keys ...[]byte) (Report, error) {
	ring, err := keyring.New(keys...)
	if err != nil {
		return Report{}, fmt.Errorf("spool.encryption_key_files: %w", err)
	}
	d, unlock, err := lockExisting(dir)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	db, err := d.openWhole()
	switch {
	case errors.Is(err, ErrNewerFormat), errors.Is(err, ErrNotSpool), errors.Is(err, ErrInUse):
		return Report{}, err
	case err != nil:
		return Report{Problems: []string{err.Error()}}, nil
	}
	defer db.Close()
	var c *checker
	err = guarded(func() error {
		return db.View(func(tx *bolt.Tx) error {
			c = newChecker(tx, ring)
			c.run()
			return nil
		})
	})
	if err != nil {
		return Report{Problems: []string{err.Error()}}, nil
	}
	if n := d.missedBy(c.stored.nextSeq); n > 0 {
		c.problem("%s", olderProblem(n))
	}
	return c.report, nil
}

// checker counts everything anew and compares.
type checker struct {
	report Report
	b      [layout.NumBuckets]*bolt.Bucket
	rows   map[string]*endpointRow // as stored
	names  map[uint32]string
	counts map[string]*endpointRow // as counted
	stored counters
	seen   counters
	due    int64
	ids    int64
	ring   *keyring.Ring
	needs  map[keyring.KeyID]bool // the keys that were met
}

func newChecker(tx *bolt.Tx, ring *keyring.Ring) *checker {
	c := &checker{
		ring: ring, needs: make(map[keyring.KeyID]bool),
		rows: make(map[string]*endpointRow), names: make(map[uint32]string), counts: make(map[string]*endpointRow),
	}
	for id := range layout.NumBuckets {
		if c.b[id] = tx.Bucket(id.Name()); c.b[id] == nil {
			c.problem("bucket %s is missing", id)
		}
	}
	return c
}

func (c *checker) problem(format string, args ...any) {
	if len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
	}
}

func (c *checker) run() {
	if len(c.report.Problems) > 0 {
		return
	}
	c.meta()
	c.endpoints()
	c.each(layout.Events, c.event)
	c.each(layout.Dead, c.dead)
	c.each(layout.Progress, c.progress)
	c.each(layout.Done, c.done)
	c.each(layout.Outbox, c.outbox)
	c.each(layout.Refused, func(index uint64, v []byte) { c.sealed(layout.Refused, index, v) })
	c.each(layout.Aside, func(uint64, []byte) { c.report.SetAside++ })
	c.keys()
	c.noted()
	c.indexes()
	c.compare()
}

func (c *checker) meta() {
	if _, err := layout.Fields(layout.KindInstance, c.b[layout.Meta].Get(layout.KeyInstance)); err != nil {
		c.problem("the instance ID: %v", err)
	}
	rec := c.b[layout.Meta].Get(layout.KeyCounters)
	if rec == nil {
		c.stored = counters{nextSeq: 1, nextEndpoint: 1, nextOutbox: 1}
		return
	}
	var err error
	if c.stored, err = decodeCounters(rec); err != nil {
		c.problem("%v", err)
	}
}

func (c *checker) endpoints() {
	_ = c.b[layout.Endpoints].ForEach(func(k, v []byte) error {
		row, err := decodeEndpoint(v)
		if err != nil {
			c.problem("%v", err)
			return nil
		}
		if c.names[row.id] != "" {
			c.problem("two endpoints have the number %d", row.id)
		}
		if row.id >= c.stored.nextEndpoint {
			c.problem("an endpoint has the number %d, which is given out next", row.id)
		}
		c.rows[string(k)], c.names[row.id] = row, string(k)
		return nil
	})
}

func (c *checker) each(id layout.Bucket, fn func(seq uint64, v []byte)) {
	_ = c.b[id].ForEach(func(k, v []byte) error {
		seq, ok := layout.Seq(k)
		if !ok {
			c.problem("bucket %s has a key of %d bytes", id, len(k))
			return nil
		}
		fn(seq, v)
		return nil
	})
}

func (c *checker) count(name string) *endpointRow {
	if c.counts[name] == nil {
		c.counts[name] = &endpointRow{}
	}
	return c.counts[name]
}

func (c *checker) sawSeq(seq uint64) {
	if seq >= c.stored.nextSeq {
		c.problem("event %d has a number that is given out next", seq)
	}
}

func (c *checker) idLeadsTo(id string, seq uint64) {
	c.ids++
	if got, ok := layout.Seq(c.b[layout.IDs].Get(layout.PackID(id))); !ok || got != seq {
		c.problem("event %d is not found by its ID", seq)
	}
}

func (c *checker) indexes() {
	var due, ids int64
	_ = c.b[layout.Due].ForEach(func([]byte, []byte) error { due++; return nil })
	_ = c.b[layout.IDs].ForEach(func(_, v []byte) error {
		// The ID of a record that was set aside cannot be read, and stays.
		if c.b[layout.Aside].Get(v) == nil {
			ids++
		}
		return nil
	})
	if due != c.due {
		c.problem("%d events wait, and %d are due some time", c.due, due)
	}
	if ids != c.ids {
		c.problem("%d events have an ID, and %d IDs are known", c.ids, ids)
	}
}

func (c *checker) compare() {
	for name := range c.counts {
		if c.rows[name] == nil {
			c.rows[name] = &endpointRow{}
		}
	}
	for name, row := range c.rows {
		got, want := *row, *c.count(name)
		got.id, got.usedAt = want.id, want.usedAt
		if got != want {
			c.problem("the counts of an endpoint are %+v, and there are %+v", got, want)
		}
	}
	s, w := &c.stored, &c.seen
	for _, n := range []struct {
		name      string
		got, want int64
	}{
		{"bytes of summaries", s.doneBytes, w.doneBytes}, {"outbox rows", s.outboxRows, w.outboxRows},
		{"bytes of outbox", s.outboxBytes, w.outboxBytes}, {"bytes of keys", s.idemBytes, w.idemBytes},
	} {
		if n.got != n.want {
			c.problem("%s: counted as %d, and there are %d", n.name, n.got, n.want)
		}
	}
}
