package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"postern/proxy/problem"
)

const (
	// streamEvery is how often the state is looked at while somebody watches. Where looking takes long, it is done more
	// rarely, so that it never takes more than one in busyShare of a processor.
	streamEvery = time.Second
	// streamQuiet is after how long without news a sign of life is sent: proxies and browsers give up on silence.
	streamQuiet = 15 * time.Second
	// streamMost bounds how many watch at once; others are told to poll.
	streamMost = 32
	// streamBehind is how many looks a client may be behind before it is dropped, and streamWrite how long one write
	// may take.
	streamBehind = 4
	streamWrite  = 10 * time.Second
)

var errTooManyStreams = refusal{problem.Problem{Status: 503, Slug: "too-many-streams", Title: "Too many are watching", RetryAfter: 30 * time.Second,
	Detail: fmt.Sprintf("%d streams are open. Poll GET %sstatus and GET %sendpoints instead, or try again later.", streamMost, api, api)}}

// part is one object of the stream as it was last: the answer of the GET call of that name.
type part struct {
	name string
	text []byte
}

// look is what one look at the state brought: all parts, and those that are new.
type look struct{ all, news []part }

// watchers share one look a second between all who watch. Nothing runs while nobody does.
type watchers struct {
	read func() []part

	mu      sync.Mutex // guards what follows
	clients map[chan look]bool
	last    []part
	running bool
	done    sync.WaitGroup
}

// join adds a client; its first look has all parts. It answers false where there are too many, or none may come any more.
func (s *watchers) join(ctx context.Context) (chan look, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= streamMost || ctx.Err() != nil {
		return nil, false
	}
	c := make(chan look, streamBehind)
	if s.clients == nil {
		s.clients = make(map[chan look]bool)
	}
	s.clients[c] = true
	if len(s.last) > 0 {
		c <- look{all: s.last, news: s.last}
	}
	if !s.running {
		s.running = true
		s.done.Go(func() { s.run(ctx) })
	}
	return c, true
}

// wait returns when nobody looks any more. The context that join was given has ended, so that none joins after it.
func (s *watchers) wait() {
	s.mu.Lock()
	running := s.running // a join that was under way has started its look by now
	s.mu.Unlock()
	if running {
		s.done.Wait()
	}
}

func (s *watchers) leave(c chan look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// run looks until nobody watches or ctx ends.
func (s *watchers) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		if !s.tell(s.read()) {
			return
		}
		timer.Reset(max(streamEvery, busyShare*time.Since(began)))
	}
}

// tell hands a look to everybody, and drops those who have not taken the last few. It answers false where nobody is left.
func (s *watchers) tell(parts []part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := look{all: parts}
	for i, p := range parts {
		if i >= len(s.last) || !bytes.Equal(p.text, s.last[i].text) {
			now.news = append(now.news, p)
		}
	}
	s.last = parts
	for c := range s.clients {
		select {
		case c <- now:
		default:
			delete(s.clients, c)
			close(c)
		}
	}
	if len(s.clients) == 0 {
		s.running, s.last = false, nil
	}
	return s.running
}

// lookAround makes the parts of the stream: what the GET calls of those names answer.
func (h *Handler) lookAround() []part {
	parts := make([]part, 0, 4)
	for _, p := range []struct {
		name string
		body any
	}{
		{"status", h.statusNow()}, {"endpoints", h.endpointsNow()}, {"activity", h.activityNow(time.Now())}, {"replays", h.replaysNow()},
	} {
		text, err := encodeJSON(p.body)
		if err != nil {
			h.internal(err)
			continue
		}
		parts = append(parts, part{p.name, bytes.TrimSpace(text)})
	}
	return parts
}

// stream sends server-sent events until the client leaves, is too slow, or Postern stops.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	if _, err := parameters(r); err != nil {
		problem.Write(w, h.problem(r, err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	c, ok := h.watchers.join(h.ctx)
	if !ok {
		w.Header().Del("Content-Type")
		problem.Write(w, errTooManyStreams.Problem)
		return
	}
	defer h.watchers.leave(c)
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // see unhurried
	quiet := time.NewTimer(streamQuiet)
	defer quiet.Stop()
	for err := out.write(": postern\n\n"); err == nil; {
		select {
		case <-r.Context().Done():
			return
		case <-h.ctx.Done():
			return
		case <-quiet.C:
			err = out.write(": still here\n\n")
		case now, open := <-c:
			if !open {
				return
			}
			if err = out.send(now); len(now.news) == 0 {
				continue
			}
		}
		quiet.Reset(streamQuiet)
	}
}

// eventWriter writes events, each within streamWrite.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    bool
}

// send writes what is new, and everything at first.
func (e *eventWriter) send(now look) error {
	parts := now.news
	if !e.sent {
		parts = now.all
	}
	if len(parts) == 0 {
		return nil
	}
	e.sent = true
	var text bytes.Buffer
	for _, p := range parts {
		fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", p.name, p.text)
	}
	return e.write(text.String())
}

func (e *eventWriter) write(text string) error {
	// Where deadlines are not supported there is no server, and so no limit.
	if err := e.control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.control.Flush()
}

// encodeJSON is how every answer of the API is written.
func encodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return text.Bytes(), err
}
