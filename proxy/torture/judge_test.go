package torture

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// tally is what one round, or all rounds of a fault, came to.
type tally struct {
	Events     int            `json:"events"`     // offered
	Accepted   int            `json:"accepted"`   // acknowledged
	Refused    int            `json:"refused"`    // with a 503
	Unanswered int            `json:"unanswered"` // no answer, and nothing to ask again by
	Delivered  int            `json:"delivered"`  // both of those with an answer and of those without
	Requests   int            `json:"requests"`   // seen by partners
	Lost       int            `json:"lost"`
	Duplicates map[string]int `json:"duplicates"` // deliveries beyond the first, by cause
	Forgotten  int            `json:"forgotten"`  // summaries and attempts that gave way on a full disk
	Unrecorded int            `json:"unrecorded"` // requests in flight at a kill, whose record is missing
	Recovery   time.Duration  `json:"recovery_ns"`
}

func (t *tally) duplicate(cause string) {
	if t.Duplicates == nil {
		t.Duplicates = map[string]int{}
	}
	t.Duplicates[cause]++
}

// recorded is an event as the API shows it.
type recorded struct {
	State    string
	Attempts []struct {
		Number     int
		StatusCode int `json:"status_code"`
		Error      string
	}
	Reason string `json:"dead_reason"`
}

// judge compares everything that was offered since the last time with what came of it. All has settled before.
func (w *world) judge() (t tally, err error) {
	first := w.judged + 1
	if strangers := w.book.strangers(first); len(strangers) > 0 {
		o := w.book.offers[strangers[0]]
		if o == nil {
			return t, fmt.Errorf("requests came with the numbers %v, which nobody offered", strangers)
		}
		return t, fmt.Errorf("requests came for %d events that had been settled before, one of them:\n%s", len(strangers), w.book.story(o))
	}
	for _, o := range w.book.from(first) {
		if err := w.judgeOffer(o, &t); err != nil {
			return t, fmt.Errorf("%w\n%s", err, w.book.story(o))
		}
	}
	w.judged = w.book.newest()
	w.book.forget()
	if n := len(w.book.arrivals("canary", 0)); n > 0 {
		return t, fmt.Errorf("%d redirects were followed", n)
	}
	return t, w.judgeLimit()
}

func (w *world) judgeOffer(o *offer, t *tally) error {
	hits := w.book.seen(o.serial)
	t.Events++
	t.Requests += len(hits)
	for _, h := range hits {
		switch {
		case h.whole && h.wrong:
			return fmt.Errorf("a body came that is not the offer's")
		case h.partner != o.partner:
			return fmt.Errorf("it came to %s", h.partner)
		case h.id != hits[0].id || o.id != "" && h.id != o.id:
			return fmt.Errorf("it came under the IDs %s, %s and was acknowledged as %q", hits[0].id, h.id, o.id)
		}
	}
	id := o.id
	switch o.outcome {
	case refused:
		t.Refused++
		if len(hits) > 0 {
			return fmt.Errorf("it was refused, and came")
		}
		return nil
	case unknown:
		t.Unanswered++
		if len(hits) == 0 {
			return nil
		}
		id = hits[0].id
	case acknowledged:
		t.Accepted++
	}
	var e recorded
	status, err := w.process.api("GET", "events/"+id, "", &e)
	if err != nil {
		return err
	}
	got := slices.ContainsFunc(hits, func(h hit) bool { return h.delivered() })
	if status == 404 && got && w.disk != nil && w.historyGaveWay() {
		// Where a disk is full history gives way, the summaries of what was delivered first, and that is counted.
		t.Delivered++
		t.Forgotten++
		return nil
	}
	if status != 200 || e.State != "delivered" {
		t.Lost++
		return fmt.Errorf("it is not delivered: the API says %d, state %q, attempts %+v", status, e.State, e.Attempts)
	}
	if !got {
		t.Lost++
		return fmt.Errorf("it is said to be delivered, and no partner answered it so: attempts %+v", e.Attempts)
	}
	t.Delivered++
	if err := w.judgeAttempts(hits, e, t); err != nil {
		return fmt.Errorf("%w: attempts recorded %+v", err, e.Attempts)
	}
	return w.judgeDuplicates(hits, e, t)
}

// historyGaveWay tells whether Postern counts history that it dropped.
func (w *world) historyGaveWay() bool {
	resp, err := w.process.client.Get("http://" + w.process.admin + "/metrics")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(page)) {
		if count, ok := strings.CutPrefix(line, "postern_spool_history_dropped_total "); ok {
			return strings.TrimSpace(count) != "0"
		}
	}
	return false
}

// keptAttempts is how many of an event's attempts are kept besides the first.
const keptAttempts = 20

// judgeAttempts holds requests seen against attempts recorded.
func (w *world) judgeAttempts(hits []hit, e recorded, t *tally) error {
	seen := map[int][]hit{}
	for _, h := range hits {
		seen[h.attempt] = append(seen[h.attempt], h)
	}
	known := map[int]bool{}
	last := 0
	for _, a := range e.Attempts {
		if known[a.Number] {
			return fmt.Errorf("attempt %d is recorded twice", a.Number)
		}
		known[a.Number] = true
		last = max(last, a.Number)
		if a.StatusCode != 0 && len(seen[a.Number]) == 0 {
			return fmt.Errorf("attempt %d has the status %d, and no partner saw it", a.Number, a.StatusCode)
		}
	}
	for n, same := range seen {
		// Where a disk is full a result leaves out the attempts between the first and the last.
		slim := w.disk != nil && n > 1 && n < last
		trimmed := n > 1 && n <= last-keptAttempts
		if slim && !known[n] {
			t.Forgotten++
		}
		if !known[n] && !trimmed && !slim {
			return fmt.Errorf("attempt %d was seen and is not recorded", n)
		}
		for i := range same[1:] {
			if w.endBetween(same[i].at, same[i+1].at) == nil {
				return fmt.Errorf("attempt %d was seen twice, and nothing ended in between", n)
			}
			t.Unrecorded++
		}
	}
	return nil
}

// endBetween is an end of the process that may have cut what began at from, before what came at to. A request that was
// under way at the end may be read a little later, since the socket has it.
func (w *world) endBetween(from, to time.Time) *end {
	slack := 100*time.Millisecond + w.lateness.around(from)
	for i, e := range w.process.ends {
		if !e.done.Add(slack).Before(from) && !e.sent.After(to) {
			return &w.process.ends[i]
		}
	}
	return nil
}

// judgeDuplicates explains each delivery after the first.
func (w *world) judgeDuplicates(hits []hit, e recorded, t *tally) error {
	var good []hit
	for _, h := range hits {
		if h.delivered() {
			good = append(good, h)
		}
	}
	for i := range good[1:] {
		cut := ""
		for _, a := range e.Attempts {
			if a.Number == good[i].attempt && (a.Error == "timeout" || a.Error == "connection") {
				cut = "answer cut (" + a.Error + ")"
			}
		}
		between := w.endBetween(good[i].at, good[i+1].at)
		switch {
		case between != nil && between.kill:
			t.duplicate("kill")
		case between != nil && between.grace:
			t.duplicate("shutdown grace over")
		case cut != "":
			t.duplicate(cut)
		default:
			return fmt.Errorf("it was delivered twice for no reason: attempts recorded %+v", e.Attempts)
		}
	}
	return nil
}

// judgeLimit counts at the limited partner: in no window more than the limit, but for what this process read late.
func (w *world) judgeLimit() error {
	times := w.book.arrivals("limited", limitSends)
	times = slices.DeleteFunc(times, func(at time.Time) bool { return at.Before(w.limitsOf) })
	for i := limitSends; i < len(times); i++ {
		window := times[i].Sub(times[i-limitSends])
		if window < limitWindow && window+w.lateness.around(times[i-limitSends]) < limitWindow {
			return fmt.Errorf("%d requests came to the limited partner within %v, from %s on", limitSends+1, window, times[i-limitSends].Format("05.000"))
		}
	}
	return nil
}

// badWords must not be in the log: a crash, or damage where nothing was damaged.
var badWords = []string{"panic:", "fatal error:", "goroutine ", "was damaged", "DATA RACE", "set aside"}

// judgeLog looks at what was logged since the last time.
func (w *world) judgeLog() error {
	b, err := io.ReadAll(w.process.said)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		for _, word := range badWords {
			if bytes.Contains(line, []byte(word)) {
				return fmt.Errorf("the log says: %s", strings.TrimSpace(string(line)))
			}
		}
	}
	return nil
}
