package spool

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// ErrCursor means that a query's cursor was not made by an earlier page.
var ErrCursor = errors.New("the cursor is not valid: leave it out to begin with the first page")

const (
	maxLimit     = 1000
	defaultLimit = 100
	// maxScanned bounds what one page looks at. A page that ends there may be short, even empty; its Next goes on.
	maxScanned = 200_000
)

// List returns the events that match a query, newest first. A page may have fewer events than the limit, or none, and
// still a Next: then much was looked through and little matched.
func (s *Spool) List(q Query) (Page, error) {
	from := uint64(math.MaxUint64)
	if q.Cursor != "" {
		var ok bool
		if from, ok = parseCursor(q.Cursor); !ok {
			return Page{}, fmt.Errorf("list: %w", ErrCursor)
		}
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, maxLimit)
	inFlight := s.inFlight()
	var page Page
	err := s.store.view(func(tx *bolt.Tx) error {
		l := lister{r: s.newReader(tx, inFlight), q: &q}
		page = l.page(from)
		return nil
	})
	return page, err
}

// cursorChecks is how many checks there are: with few, a word that somebody makes up is a cursor by chance.
const cursorChecks = 36 * 36 * 36 * 36

// cursorAt is the text for a page that begins at a sequence number. Its check lets a mistyped one be refused: as a number it
// would lead somewhere, mostly to the first page again.
func cursorAt(seq uint64) string {
	digits := strconv.FormatUint(seq, 36)
	return digits + "-" + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(digits))%cursorChecks), 36)
}

func parseCursor(text string) (seq uint64, ok bool) {
	digits, _, _ := strings.Cut(text, "-")
	seq, err := strconv.ParseUint(digits, 36, 64)
	return seq, err == nil && cursorAt(seq) == text
}

// lister merges the buckets that can hold what is asked for, from the newest event back.
type lister struct {
	r       *reader
	q       *Query
	cursors []*downCursor
}

// downCursor walks one bucket backwards.
type downCursor struct {
	id  layout.Bucket
	c   *bolt.Cursor
	seq uint64
	rec []byte
	ok  bool
}

func (l *lister) page(from uint64) (page Page) {
	l.open(from)
	for scanned := 0; ; scanned++ {
		c := l.newest()
		if c == nil {
			return page
		}
		if len(page.Events) == l.q.Limit || scanned == maxScanned {
			page.Next = cursorAt(c.seq)
			return page
		}
		if v, err := l.view(c); err == nil && l.q.matches(&v) {
			page.Events = append(page.Events, v)
		}
		l.pass(c.seq)
	}
}

// open chooses the buckets. Failed events are found by their progress, which spares looking at all that were never tried.
func (l *lister) open(from uint64) {
	buckets := map[State][]layout.Bucket{
		0:               {layout.Events, layout.Dead, layout.Done},
		StatePending:    {layout.Events},
		StateInFlight:   {layout.Events},
		StateFailed:     {layout.Progress},
		StateDelivered:  {layout.Done},
		StateDeadLetter: {layout.Dead},
	}
	sources := map[layout.Bucket]*bolt.Bucket{
		layout.Events: l.r.events, layout.Progress: l.r.prog, layout.Dead: l.r.dead, layout.Done: l.r.done,
	}
	for _, id := range buckets[l.q.State] {
		c := &downCursor{id: id, c: sources[id].Cursor()}
		c.seek(from)
		l.cursors = append(l.cursors, c)
	}
}

// seek moves to the last row at or before a sequence number.
func (c *downCursor) seek(from uint64) {
	k, v := c.c.Seek(layout.SeqKey(from))
	if seq, ok := layout.Seq(k); k == nil {
		k, v = c.c.Last()
	} else if !ok || seq > from {
		k, v = c.c.Prev()
	}
	c.set(k, v)
}

func (c *downCursor) set(k, v []byte) {
	c.seq, c.ok = layout.Seq(k)
	c.rec = v
}

func (l *lister) newest() (best *downCursor) {
	for _, c := range l.cursors {
		if c.ok && (best == nil || c.seq > best.seq) {
			best = c
		}
	}
	return best
}

// pass moves every cursor beyond an event that was looked at: a dead letter is in two buckets.
func (l *lister) pass(seq uint64) {
	for _, c := range l.cursors {
		if c.ok && c.seq >= seq {
			c.set(c.c.Prev())
		}
	}
}

func (l *lister) view(c *downCursor) (View, error) {
	switch c.id {
	case layout.Done:
		return l.r.delivered(c.seq, c.rec)
	case layout.Dead:
		return l.r.deadView(c.seq, c.rec, eventTarget)
	}
	return l.r.bySeq(c.seq, eventTarget)
}

// DeadLetters yields the dead letters that match a query, without headers and body, the longest accepted first, until
// yield returns false. State, Limit and Cursor of the query are ignored. yield may take its time and may call the spool.
func (s *Spool) DeadLetters(q Query, yield func(View) bool) error {
	q.State = StateDeadLetter
	for from := uint64(0); ; {
		var found []View
		next := uint64(0)
		err := s.store.view(func(tx *bolt.Tx) error {
			r := s.newReader(tx, nil)
			next = scanRows(r.dead, from, func(seq uint64, rec []byte) {
				if v, err := r.deadView(seq, rec, eventTarget); err == nil && q.matches(&v) {
					found = append(found, v)
				}
			})
			return nil
		})
		if err != nil {
			return err
		}
		for _, v := range found {
			if !yield(v) {
				return nil
			}
		}
		if next == 0 {
			return nil
		}
		from = next
	}
}
