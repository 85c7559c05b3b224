package ingest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/ingest"
	"postern/proxy/server"
	"postern/proxy/target"
	"postern/spool"
)

func TestAccepted(t *testing.T) {
	d := open(t)
	form := regexp.MustCompile(`^\{"id":"(evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})","endpoint":"https://x.example","state":"pending","duplicate":false\}$`)
	last := ""
	for range 20 {
		got := d.send("POST /https://x.example/?q HTTP/1.1\nHost: HOST\nContent-Length: 2\n\nab")
		match := form.FindStringSubmatch(got.body)
		if got.status != 202 || match == nil || got.header.Get("Content-Type") != "application/json" || got.header.Get("Content-Length") != strconv.Itoa(len(got.body)) {
			t.Fatalf("%d %v %s", got.status, got.header, got.body)
		}
		if id := got.header.Get("Postern-Event-Id"); id != match[1] || id <= last {
			t.Errorf("ID %s after %s, in the header %s", match[1], last, id)
		}
		last = match[1]
	}
	if e := d.spool.all()[19]; e.ID != last || e.ExplicitID || e.AcceptedAt.IsZero() || e.AcceptedAt.Nanosecond()%1000 != 0 {
		t.Errorf("%+v", e)
	}
	if len(d.counts.accepted) != 20 || d.counts.accepted[0] != "https://x.example" {
		t.Errorf("counted %v", d.counts.accepted)
	}
}

func TestAnswerToHead(t *testing.T) {
	d := open(t)
	got := d.send("HEAD /https://x.example/ HTTP/1.1\nHost: HOST\nPostern-Event-Id: h1")
	if got.status != 202 || got.body != "" || got.header.Get("Postern-Event-Id") != "h1" ||
		got.header.Get("Content-Length") != strconv.Itoa(len(`{"id":"h1","endpoint":"https://x.example","state":"pending","duplicate":false}`)) {
		t.Errorf("%d %v %q", got.status, got.header, got.body)
	}
	if e := d.spool.all()[0]; e.Method != "HEAD" {
		t.Errorf("method %s", e.Method)
	}
	if refused := d.send("HEAD / HTTP/1.1\nHost: HOST"); refused.status != 400 || refused.body != "" {
		t.Errorf("%d %q", refused.status, refused.body)
	}
}

func TestDuplicate(t *testing.T) {
	d := open(t)
	d.spool.result = func(e *spool.Event) spool.AppendResult {
		return spool.AppendResult{ID: "first", Endpoint: e.Endpoint, State: spool.StateDelivered, Duplicate: true}
	}
	// It does not wait either: the first event's attempt is not this request's.
	got := d.send("POST /https://x.example/ HTTP/1.1\nHost: HOST\nPrefer: wait=60\nIdempotency-Key: k\nContent-Length: 0")
	if got.status != 200 || got.body != `{"id":"first","endpoint":"https://x.example","state":"delivered","duplicate":true}` || got.header.Get("Postern-Event-Id") != "first" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if len(d.counts.accepted) != 0 {
		t.Errorf("counted %v", d.counts.accepted)
	}
}

func TestOddNamesAreStillJSON(t *testing.T) {
	d := open(t)
	for _, name := range []string{`a"b`, `a\b`, "a<&>b", "é\u2028", "a\xffb", "a\x7fb", "a\nb"} {
		d.spool.result = func(e *spool.Event) spool.AppendResult { return spool.AppendResult{ID: e.ID, Endpoint: name} }
		got := d.send("POST /to/partner-a HTTP/1.1\nHost: HOST\nContent-Length: 0")
		var read struct{ ID, Endpoint, State string }
		if err := json.Unmarshal([]byte(got.body), &read); err != nil {
			t.Fatalf("%q: %v in %s", name, err, got.body)
		}
		if read.Endpoint != strings.ToValidUTF8(name, "\ufffd") || read.State != "pending" {
			t.Errorf("%q: %s", name, got.body)
		}
	}
}

// waiting sends a request with Prefer: wait and answers it when its event is spooled.
func waiting(t *testing.T, d *door, head string, answer ingest.Answer) reply {
	t.Helper()
	d.spool.result = func(e *spool.Event) spool.AppendResult {
		d.waiters.answer(e.ID, answer) // the attempt may end before Append returns
		return spool.AppendResult{ID: e.ID, Endpoint: e.Endpoint, State: spool.StatePending}
	}
	return d.send(head + "\nHost: HOST\nPrefer: wait=30\nContent-Length: 0")
}

func TestAnswerOfTheReceiver(t *testing.T) {
	d := open(t)
	const post = "POST /https://x.example/ HTTP/1.1"
	tests := []struct {
		name   string
		head   string
		answer ingest.Answer
		status int
		body   string
		want   map[string][]string
	}{
		{"all of it", post, ingest.Answer{Delivered: true, Status: 201, Body: []byte("made\r\n\xff"), Headers: []spool.Header{
			{Name: "content-type", Value: "text/x"}, {Name: "Set-Cookie", Value: "a=1"}, {Name: "Set-Cookie", Value: "b=2"},
			{Name: "Content-Length", Value: "99"}, {Name: "Transfer-Encoding", Value: "chunked"}, {Name: "Connection", Value: "close, X-Hop"},
			{Name: "X-Hop", Value: "1"}, {Name: "Keep-Alive", Value: "1"}, {Name: "Date", Value: "Mon, 01 Jan 2001 00:00:00 GMT"}, {Name: "Postern-Event-Id", Value: "theirs"},
		}}, 201, "made\r\n\xff", map[string][]string{
			"Content-Type": {"text/x"}, "Set-Cookie": {"a=1", "b=2"}, "Content-Length": {"7"}, "Transfer-Encoding": nil,
			"X-Hop": nil, "Keep-Alive": nil, "Date": {"Mon, 01 Jan 2001 00:00:00 GMT"}, "Preference-Applied": {"wait"}, "Connection": nil}},
		{"no type is guessed", post, ingest.Answer{Delivered: true, Status: 200, Body: []byte("<html>")}, 200, "<html>", map[string][]string{"Content-Type": nil}},
		{"empty", post, ingest.Answer{Delivered: true, Status: 200}, 200, "", map[string][]string{"Content-Length": {"0"}}},
		{"no content", post, ingest.Answer{Delivered: true, Status: 204, Body: []byte("x")}, 204, "", map[string][]string{"Content-Length": nil}},
		{"reset content", post, ingest.Answer{Delivered: true, Status: 205}, 205, "", map[string][]string{"Content-Length": {"0"}}},
		{"theirs applied too", post, ingest.Answer{Delivered: true, Status: 200, Headers: []spool.Header{{Name: "Preference-Applied", Value: "return=minimal"}}},
			200, "", map[string][]string{"Preference-Applied": {"return=minimal", "wait"}}},
		{"HEAD", "HEAD /https://x.example/ HTTP/1.1", ingest.Answer{Delivered: true, Status: 200, Headers: []spool.Header{{Name: "Content-Length", Value: "1234"}}},
			200, "", map[string][]string{"Content-Length": {"1234"}, "Preference-Applied": {"wait"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := waiting(t, d, tt.head, tt.answer)
			if got.status != tt.status || got.body != tt.body {
				t.Errorf("%d %q", got.status, got.body)
			}
			for name, want := range tt.want {
				if have := got.header[name]; strings.Join(have, "|") != strings.Join(want, "|") {
					t.Errorf("%s: %q, want %q", name, have, want)
				}
			}
			events := d.spool.all()
			if id := got.header["Postern-Event-Id"]; len(id) != 1 || id[0] != events[len(events)-1].ID {
				t.Errorf("event ID %q", id)
			}
		})
	}
	if len(d.waiters.asked) != 0 || d.waiters.ended != len(tests) {
		t.Errorf("%d waits left, %d ended", len(d.waiters.asked), d.waiters.ended)
	}
}

func TestAnswersThatAreNotPassedOn(t *testing.T) {
	d := open(t)
	for name, answer := range map[string]ingest.Answer{
		"failed":  {Status: 500, Body: []byte("SECRET")},
		"too big": {Delivered: true, Status: 200, Body: []byte("SECRET"), TooBig: true},
		"odd":     {Delivered: true, Status: 0},
	} {
		got := waiting(t, d, "POST /https://x.example/ HTTP/1.1", answer)
		if got.status != 202 || !strings.Contains(got.body, `"state":"pending"`) || got.header.Get("Preference-Applied") != "" {
			t.Errorf("%s: %d %v %s", name, got.status, got.header, got.body)
		}
	}
}

// bubble is a request straight to the handler, where synctest owns the time.
func bubble(ctx context.Context, d *door, prefer string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, "POST", "/https://x.example/", nil)
	r.Host = "localhost"
	r.Header.Set("Prefer", prefer)
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

func TestHowLongItWaits(t *testing.T) {
	for prefer, want := range map[string]time.Duration{"wait=7": 7 * time.Second, "wait=0": 0, "wait=60": time.Minute, "wait=61": time.Minute,
		"wait=99999999999999999999": time.Minute, `wait="3"`: 3 * time.Second, "wait=2, wait=5": 2 * time.Second, "wait=x, wait=5": 5 * time.Second,
		"wait": 0, "wait=1.5": 0, "wait=-1": 0, "WAIT = 4;x=y": 4 * time.Second, "respond-async": 0} {
		t.Run(prefer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoor(t, "127.0.0.1:18089", nil)
				start := time.Now()
				if w := bubble(t.Context(), d, prefer); w.Code != 202 || time.Since(start) != want {
					t.Errorf("%d after %v, want 202 after %v", w.Code, time.Since(start), want)
				}
				if len(d.waiters.asked) != 0 {
					t.Error("the wait was left behind")
				}
			})
		})
	}
}

func TestWaitingEnds(t *testing.T) {
	ends := map[string]struct {
		after func(d *door, leave context.CancelFunc, id string)
		want  int
	}{
		"with the attempt": {func(d *door, _ context.CancelFunc, id string) {
			d.waiters.answer(id, ingest.Answer{Delivered: true, Status: 204})
		}, 204},
		"with a failed attempt":    {func(d *door, _ context.CancelFunc, id string) { d.waiters.answer(id, ingest.Answer{Status: 500}) }, 202},
		"when the client leaves":   {func(_ *door, leave context.CancelFunc, _ string) { leave() }, 202},
		"when Postern has stopped": {func(d *door, _ context.CancelFunc, _ string) { d.handler.Stop(time.Second); d.handler.Dismiss() }, 202},
		"with an attempt that ends while Postern stops": {func(d *door, _ context.CancelFunc, id string) {
			d.handler.Stop(time.Second)
			d.waiters.answer(id, ingest.Answer{Delivered: true, Status: 204})
			d.handler.Dismiss()
		}, 204},
		"when nobody will tell any": {func(d *door, _ context.CancelFunc, id string) { close(d.waiters.asked[id]) }, 202},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoor(t, "127.0.0.1:18089", nil)
				d.waiters.arrived = make(chan string, 1)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				start := time.Now()
				go func() {
					id := <-d.waiters.arrived
					time.Sleep(5 * time.Second)
					end.after(d, leave, id)
				}()
				if w := bubble(ctx, d, "wait=60"); w.Code != end.want || time.Since(start) != 5*time.Second {
					t.Errorf("%d after %v", w.Code, time.Since(start))
				}
				if len(d.spool.all()) != 1 {
					t.Error("not spooled")
				}
			})
		})
	}
}

// oneConn is a listener that gives out one connection and then blocks until it is closed.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l oneConn) Close() error   { close(l.closed); return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// piped serves one connection in a bubble.
func piped(t *testing.T, do func(d *door, client net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, "127.0.0.1:18089", nil)
		d.waiters.arrived, d.waiters.gone = make(chan string, 1), make(chan string, 1)
		srv := server.New(server.Config{Name: "ingest", Handler: d.handler, Logger: slog.New(slog.DiscardHandler), Limits: server.Ingest, WatchOnDemand: true})
		client, ours := net.Pipe()
		listener := oneConn{make(chan net.Conn, 1), make(chan struct{})}
		listener.conn <- ours
		go func() { _ = srv.Serve(listener) }()
		do(d, client)
		_ = client.Close()
		_ = srv.Close()
	})
}

// A body that comes slowly and a long wait together take longer than the server's deadline for reading. That must not
// look like a client that leaves.
func TestWaitOutlivesTheReadDeadline(t *testing.T) {
	piped(t, func(d *door, client net.Conn) {
		go func() {
			id := <-d.waiters.arrived
			time.Sleep(50 * time.Second)
			d.waiters.answer(id, ingest.Answer{Delivered: true, Status: 204})
		}()
		mustWrite(t, client, wire("localhost", "POST /https://x.example/ HTTP/1.1\nHost: HOST\nPrefer: wait=60\nContent-Length: 2\n\na"))
		time.Sleep(server.Ingest.Read - 5*time.Second)
		mustWrite(t, client, "b")
		if got := readReply(t, client, "POST"); got.status != 204 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

func TestLeavingIsNoticedAtOnce(t *testing.T) {
	piped(t, func(d *door, client net.Conn) {
		mustWrite(t, client, wire("localhost", "POST /https://x.example/ HTTP/1.1\nHost: HOST\nPrefer: wait=60\nContent-Length: 2\n\nab"))
		<-d.waiters.arrived
		start := time.Now()
		time.Sleep(50 * time.Second) // the deadline for the header has gone off meanwhile
		_ = client.Close()
		<-d.waiters.gone
		if took := time.Since(start); took != 50*time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

// Nobody waits for a client that has left, however early it did: its event is kept, and the rest is let go.
func TestTheClientLeavesWhileItWaits(t *testing.T) {
	for name, early := range map[string]bool{"before the event is kept": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.waiters.arrived, d.waiters.gone = make(chan string, 1), make(chan string, 1)
			conn := d.dial()
			d.spool.result = func(e *spool.Event) spool.AppendResult {
				if early {
					_ = conn.Close()
				}
				return spool.AppendResult{ID: e.ID, Endpoint: e.Endpoint, State: spool.StatePending}
			}
			mustWrite(t, conn, wire(d.addr, "POST /https://x.example/ HTTP/1.1\nHost: HOST\nPrefer: wait=60\nContent-Length: 2\n\nab"))
			start := time.Now()
			if !early {
				<-d.waiters.arrived
				_ = conn.Close()
			}
			<-d.waiters.gone
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("noticed after %v", took)
			}
		})
	}
}

func TestWithoutWaiters(t *testing.T) {
	d := open(t)
	h := ingest.New(ingest.Config{}, ingest.Parts{Book: fakeBook{}, Spool: d.spool})
	r := httptest.NewRequest("POST", "/https://x.example/", strings.NewReader(strings.Repeat("x", ingest.DefaultMaxEventBytes)))
	r.Host = "localhost"
	r.Header.Set("Prefer", "wait=30")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 202 || values(d.spool.all()[0], "User-Agent")[0] != "Postern" {
		t.Errorf("%d %v %v", w.Code, w.Header(), d.spool.all()[0].Headers)
	}
	r = httptest.NewRequest("POST", "/https://x.example/", strings.NewReader(strings.Repeat("x", ingest.DefaultMaxEventBytes+1)))
	r.Host = "localhost"
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 413 {
		t.Errorf("%d for a body over the default limit", w.Code)
	}
}

// The book gets the target that is meant, and only that.
type spyBook struct {
	fakeBook
	asked []target.Target
}

func (b *spyBook) AdHoc(t target.Target) (ingest.Endpoint, error) {
	b.asked = append(b.asked, t)
	return b.fakeBook.AdHoc(t)
}

func TestTheBookIsAskedOnce(t *testing.T) {
	book := &spyBook{fakeBook: fakeBook{}}
	h := ingest.New(ingest.Config{}, ingest.Parts{Book: book, Spool: &fakeSpool{}})
	r := httptest.NewRequest("GET", "/https:/U:P@X.Example:443//a?b", nil)
	r.Host = "localhost"
	h.ServeHTTP(httptest.NewRecorder(), r)
	if len(book.asked) != 1 || book.asked[0].Origin() != "https://x.example" || book.asked[0].PathQuery != "//a?b" || book.asked[0].Password != "P" {
		t.Errorf("%d times: %#v", len(book.asked), book.asked)
	}
}
