package torture

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// outcome is what a client was told of its offer.
type outcome string

const (
	acknowledged outcome = "acknowledged"
	refused      outcome = "refused"
	unknown      outcome = "unknown" // no answer, or one that says that nobody knows
)

// offer is one event that a client hands over, perhaps several times.
type offer struct {
	serial   int
	partner  string
	path     string // of ingest
	explicit string // Postern-Event-Id
	key      string // Idempotency-Key
	size     int

	outcome outcome
	id      string // the event's, from the answer
	at      time.Time
	told    []string // each answer, for the story
}

// body is what an offer carries: its own, so that a mix-up shows.
func (o *offer) body() []byte {
	unit := fmt.Appendf(nil, "%d.", o.serial)
	return bytes.Repeat(unit, o.size/len(unit)+1)[:o.size]
}

// hit is one request as a partner saw it, once its head was there.
type hit struct {
	at       time.Time
	serial   int
	id       string
	attempt  int
	partner  string
	mode     mode
	whole    bool // the body was read, too
	wrong    bool // and is another one
	status   int  // that was answered, 0 for none
	answered time.Time
}

func (h *hit) delivered() bool { return h.status >= 200 && h.status < 300 }

// ledger remembers both sides.
type ledger struct {
	mu     sync.Mutex // guards what follows
	offers map[int]*offer
	hits   map[int][]*hit
	order  map[string][]*hit // by partner
	next   int
}

func newLedger() *ledger {
	return &ledger{offers: map[int]*offer{}, hits: map[int][]*hit{}, order: map[string][]*hit{}}
}

// add gives an offer its number.
func (l *ledger) add(o *offer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	o.serial, o.outcome = l.next, unknown
	l.offers[o.serial] = o
}

// tell notes what a client was answered. Once acknowledged, always acknowledged.
func (l *ledger) tell(o *offer, got outcome, id, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.told = append(o.told, fmt.Sprintf("%s %s: %s", time.Now().Format("05.000"), got, text))
	if o.outcome != acknowledged {
		o.outcome, o.id = got, id
	}
}

func (l *ledger) saw(partner string, req *http.Request, m mode) *hit {
	attempt, _ := strconv.Atoi(req.Header.Get("Postern-Attempt"))
	h := &hit{at: time.Now(), serial: serialOf(req.Header), id: req.Header.Get("Postern-Event-Id"), attempt: attempt, partner: partner, mode: m}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hits[h.serial] = append(l.hits[h.serial], h)
	l.order[partner] = append(l.order[partner], h)
	return h
}

func (l *ledger) read(h *hit, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.whole = true
	o := l.offers[h.serial]
	h.wrong = o == nil || !bytes.Equal(body, o.body())
}

func (l *ledger) answered(h *hit, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.status, h.answered = status, time.Now()
}

// from are the offers from this serial on.
func (l *ledger) from(serial int) (offers []*offer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := serial; n <= l.next; n++ {
		offers = append(offers, l.offers[n])
	}
	return offers
}

// newest is the number of the last offer.
func (l *ledger) newest() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// seen are the requests of one offer.
func (l *ledger) seen(serial int) []hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	var hits []hit
	for _, h := range l.hits[serial] {
		hits = append(hits, *h)
	}
	return hits
}

// strangers are the numbers of requests that nobody offered since this serial: what was judged before must not come again.
func (l *ledger) strangers(first int) (numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.hits {
		if n < first || l.offers[n] == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// forget drops the requests that were judged.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.hits)
}

// arrivals are a partner's requests in order; those up to the last keep are forgotten.
func (l *ledger) arrivals(partner string, keep int) []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var times []time.Time
	for _, h := range l.order[partner] {
		times = append(times, h.at)
	}
	l.order[partner] = l.order[partner][max(0, len(times)-keep):]
	return times
}

// story is an event's life, for whoever has to find out.
func (l *ledger) story(o *offer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "offer %d to %s, event %q, explicit ID %q, key %q, %d bytes\n", o.serial, o.partner, o.id, o.explicit, o.key, o.size)
	for _, t := range o.told {
		fmt.Fprintf(&b, "  client %s\n", t)
	}
	for _, h := range l.seen(o.serial) {
		fmt.Fprintf(&b, "  partner %s: event %s attempt %d while it %s; whole %v, answered %d\n", h.at.Format("05.000"), h.id, h.attempt, h.mode, h.whole, h.status)
	}
	return b.String()
}
