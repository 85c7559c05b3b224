package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// clients is how many post at the same time; each waits up to maxGap between two events.
const (
	clients = 8
	maxGap  = 60 * time.Millisecond
)

// traffic is what the applications do in one round.
type traffic struct {
	w    *world
	ctx  context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
	http http.Client
}

// startTraffic lets clients post until stop is called. What they post follows from the seed.
func (w *world) startTraffic(seed uint64) *traffic {
	t := &traffic{w: w, http: http.Client{Timeout: 12 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	t.ctx, t.end = context.WithCancel(context.Background())
	for c := range clients {
		rnd := rand.New(rand.NewPCG(seed, uint64(c)))
		t.wg.Go(func() { t.client(rnd) })
	}
	return t
}

// stop waits until each client has its answer.
func (t *traffic) stop() {
	t.end()
	t.wg.Wait()
	t.http.CloseIdleConnections()
}

func (t *traffic) client(rnd *rand.Rand) {
	for t.ctx.Err() == nil {
		o := t.w.newOffer(rnd)
		t.post(o)
		wait := time.NewTimer(time.Duration(rnd.Int64N(int64(maxGap))))
		select {
		case <-t.ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

func (w *world) newOffer(rnd *rand.Rand) *offer {
	o := &offer{partner: partnerNames[rnd.IntN(len(partnerNames))], at: time.Now()}
	w.book.add(o)
	o.path = "/to/" + o.partner + "/pb"
	if o.partner == adHoc {
		o.path = "/http://" + w.partners[adHoc].addr + "/pb"
	}
	switch rnd.IntN(10) {
	case 0:
		o.size = 0
	case 1:
		o.size = maxEventBytes - rnd.IntN(2)
	default:
		o.size = rnd.IntN(1500)
	}
	if w.bulky.Load() {
		o.size = maxEventBytes
	}
	switch rnd.IntN(3) {
	case 0:
		o.explicit = fmt.Sprintf("order-%d", o.serial)
	case 1:
		o.key = fmt.Sprintf("key-%d", o.serial)
	}
	return o
}

// post hands an offer over once and notes the answer. The request outlives the round's end: an answer is waited for.
func (t *traffic) post(o *offer) {
	req, err := http.NewRequest("POST", "http://"+t.w.process.ingest, bytes.NewReader(o.body()))
	if err != nil {
		panic(err) // a mistake of this program
	}
	req.GetBody = nil // no second request by itself
	req.URL.Opaque = o.path
	req.Header.Set(serialHeader, fmt.Sprint(o.serial))
	if o.explicit != "" {
		req.Header.Set("Postern-Event-Id", o.explicit)
	}
	if o.key != "" {
		req.Header["Idempotency-Key"] = []string{o.key}
	}
	resp, err := t.http.Do(req)
	if err != nil {
		t.w.book.tell(o, unknown, "", err.Error())
		return
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	got, id := judgeAnswer(resp, b)
	if err != nil && got != refused {
		got = unknown
	}
	t.w.book.tell(o, got, id, fmt.Sprintf("%d %s", resp.StatusCode, bytes.TrimSpace(b)))
}

// judgeAnswer reads what an answer says of the event.
func judgeAnswer(resp *http.Response, body []byte) (outcome, string) {
	switch {
	case resp.StatusCode == 202 || resp.StatusCode == 200:
		var a struct{ ID string }
		if json.Unmarshal(body, &a) != nil || a.ID == "" {
			return unknown, ""
		}
		return acknowledged, a.ID
	case strings.Contains(string(body), "unknown"):
		return unknown, ""
	}
	return refused, ""
}

// repeat asks again for whatever has no answer and can be asked for: by its key or its ID.
func (w *world) repeat(first int) error {
	t := &traffic{w: w, ctx: context.Background(), http: http.Client{Timeout: 12 * time.Second}}
	defer t.http.CloseIdleConnections()
	for _, o := range w.book.from(first) {
		if o.outcome != unknown || o.explicit == "" && o.key == "" {
			continue
		}
		if t.post(o); o.outcome != acknowledged {
			return fmt.Errorf("an offer that had no answer was not taken when it was repeated\n%s", w.book.story(o))
		}
	}
	return nil
}
