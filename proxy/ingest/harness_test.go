package ingest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/proxy/guard"
	"postern/proxy/ingest"
	"postern/proxy/server"
	"postern/proxy/target"
	"postern/spool"
)

// fakeSpool keeps what it is given; fail and result, where set, decide what Append says.
type fakeSpool struct {
	mu     sync.Mutex
	events []*spool.Event
	fail   error
	result func(*spool.Event) spool.AppendResult
}

func (s *fakeSpool) Append(ctx context.Context, e *spool.Event) (spool.AppendResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmpErr(s.fail, ctx.Err()); err != nil {
		return spool.AppendResult{}, err
	}
	s.events = append(s.events, e)
	if s.result != nil {
		return s.result(e), nil
	}
	return spool.AppendResult{ID: e.ID, Endpoint: e.Endpoint, State: spool.StatePending}, nil
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (s *fakeSpool) all() []*spool.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// fakeBook has partner-a, and lets everything be reached but the hosts that end in .forbidden.
type fakeBook map[string]ingest.Endpoint

func (b fakeBook) Named(name string) (ingest.Endpoint, bool) {
	ep, ok := b[name]
	return ep, ok
}

func (b fakeBook) AdHoc(t target.Target) (ingest.Endpoint, error) {
	if strings.HasSuffix(t.Hostname(), ".forbidden") {
		return ingest.Endpoint{}, errors.New("the address is private; an operator can allow it under targets.allow")
	}
	return ingest.Endpoint{Name: t.Origin(), MaxAttempts: 20}, nil
}

// counts is an Observer that remembers.
type counts struct {
	mu       sync.Mutex
	accepted []string
	rejected []string
}

func (c *counts) Accepted(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = append(c.accepted, endpoint)
}

func (c *counts) Rejected(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejected = append(c.rejected, reason)
}

// waiters hands out one channel per event.
type waiters struct {
	mu      sync.Mutex
	asked   map[string]chan ingest.Answer
	ended   int
	arrived chan string // each registered ID, where not nil
	gone    chan string // each ID that is waited for no more, where not nil
}

func (w *waiters) Wait(id string) (<-chan ingest.Answer, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan ingest.Answer, 1)
	if w.asked == nil {
		w.asked = map[string]chan ingest.Answer{}
	}
	w.asked[id] = ch
	if w.arrived != nil {
		w.arrived <- id
	}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.asked, id)
		w.ended++
		if w.gone != nil {
			w.gone <- id
		}
	}
}

func (w *waiters) answer(id string, a ingest.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[id] <- a
}

// door is a running ingest listener with fakes behind it.
type door struct {
	t       *testing.T
	addr    string
	handler *ingest.Handler
	spool   *fakeSpool
	counts  *counts
	waiters *waiters
	log     *lockedLog
}

type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const maxBody = 100_000

func newDoor(t *testing.T, addr string, guardConfig *guard.Config) *door {
	partner, err := target.Parse("https://partner.example/postback?aff=7")
	if err != nil {
		t.Fatal(err)
	}
	loop, err := target.Parse("http://localhost:18090/")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, addr: addr, spool: &fakeSpool{}, counts: &counts{}, waiters: &waiters{}, log: &lockedLog{}}
	parts := ingest.Parts{
		Book: fakeBook{
			"partner-a": {Name: "partner-a", URL: partner, MaxAttempts: 10, MaxTimeout: 30e9},
			"a b":       {Name: "a b", URL: partner},
			"loop":      {Name: "loop", URL: loop},
		},
		Spool: d.spool, Waiters: d.waiters, Observer: d.counts, Watch: server.Watch,
	}
	if guardConfig != nil {
		parts.Guard = guard.New(*guardConfig)
	}
	d.handler = ingest.New(ingest.Config{MaxEventBytes: maxBody, Version: "1.2.3", Listen: []string{addr}, OwnAddrs: []string{"127.0.0.1:18090"}}, parts)
	return d
}

// open starts a real server, which ends with the test.
func open(t *testing.T) *door { return openWith(t, nil) }

func openWith(t *testing.T, guardConfig *guard.Config) *door {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(t, listener.Addr().String(), guardConfig)
	srv := server.New(server.Config{Name: "ingest", Handler: d.handler, Logger: slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Limits: server.Ingest, WatchOnDemand: true})
	ended := make(chan error)
	go func() { ended <- srv.Serve(listener) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return d
}

// reply is what a client reads back.
type reply struct {
	status int
	header http.Header
	body   string
	raw    string
}

// problem reads the body as RFC 9457 says.
func (r reply) detail(t *testing.T) string {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatalf("%v in %q", err, r.body)
	}
	if r.header.Get("Content-Type") != "application/problem+json" || p.Status != r.status || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Fatalf("not a complete problem: %v %s", r.header, r.body)
	}
	return p.Detail
}

func (d *door) dial() net.Conn {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	return conn
}

// send writes raw bytes on a connection of its own and reads one reply. Lines may end in a bare \n; HOST is ours.
func (d *door) send(text string) reply {
	d.t.Helper()
	conn := d.dial()
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, wire(d.addr, text)); err != nil {
		d.t.Fatal(err)
	}
	return readReply(d.t, conn, text[:strings.IndexByte(text, ' ')])
}

// wire makes CRLF of the line ends of a request's head.
func wire(addr, text string) string {
	head, body, _ := strings.Cut(text, "\n\n")
	return strings.ReplaceAll(strings.ReplaceAll(head, "HOST", addr), "\n", "\r\n") + "\r\n\r\n" + body
}

func readReply(t *testing.T, from io.Reader, method string) reply {
	t.Helper()
	var raw strings.Builder
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(from, &raw)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no response to %s: %v", method, err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body), raw: raw.String()}
}

// accepted sends a request that must be taken in, and gives back its event.
func (d *door) accepted(text string) *spool.Event {
	d.t.Helper()
	before := len(d.spool.all())
	got := d.send(text)
	events := d.spool.all()
	if got.status != http.StatusAccepted || len(events) != before+1 {
		d.t.Fatalf("%q: %d %s, %d events", text, got.status, got.body, len(events)-before)
	}
	return events[before]
}

// values lists the event's header lines of a name.
func values(e *spool.Event, name string) []string {
	var list []string
	for _, h := range e.Headers {
		if h.Name == name {
			list = append(list, h.Value)
		}
	}
	return list
}
