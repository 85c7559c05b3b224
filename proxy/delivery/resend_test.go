package delivery_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/proxy/delivery"
	"postern/proxy/egress"
	"postern/proxy/retry"
	"postern/spool"
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "SEARCH", "BREW", "get"}

// TestNoSilentSecondSend: the receiver answers the first request of a connection, reads the second whole and closes.
// Whatever net/http thinks of the request, every one that the receiver sees is an attempt.
func TestNoSilentSecondSend(t *testing.T) {
	keys := [][]spool.Header{nil, {{Name: "Idempotency-Key", Value: "k"}}, {{Name: "X-Idempotency-Key", Value: "k"}}}
	for _, method := range methods {
		for _, body := range []string{"", "body"} {
			for _, key := range keys {
				r := newRecv(t, func(c net.Conn, n int) bool { return n == 1 && say(ok204)(c, n) })
				e := newEndpoint(t)
				first := send(t, e, newEvent(method, r.url("/"), body, key...))
				second := send(t, e, newEvent(method, r.url("/"), body, key...))
				if first.Class != "" || first.Stale || first.Unsent {
					t.Errorf("%s %q %v: first %+v", method, body, key, first)
				}
				if second.Class != retry.Connection || !second.Stale || second.Unsent || second.Sampled {
					t.Errorf("%s %q %v: second %+v", method, body, key, second)
				}
				if seen := len(r.seen()); seen != 2 {
					t.Errorf("%s %q %v: two attempts made %d requests", method, body, key, seen)
				}
				r.stop()
			}
		}
	}
}

// TestBreakOnAFreshConnectionCounts: there it says something about the endpoint.
func TestBreakOnAFreshConnectionCounts(t *testing.T) {
	r := newRecv(t, func(net.Conn, int) bool { return false })
	for range 3 {
		if got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x")); got.Class != retry.Connection || got.Stale || got.Unsent {
			t.Errorf("%+v", got)
		}
	}
	if seen := len(r.seen()); seen != 3 {
		t.Errorf("3 attempts made %d requests", seen)
	}
}

// TestStaleKeepAlive: the receiver closes each connection right after its answer, without saying so, which a client
// may notice before the next request, while it writes it, or after it.
func TestStaleKeepAlive(t *testing.T) {
	r := newRecv(t, func(c net.Conn, n int) bool { say(ok204)(c, n); return false })
	e := newEndpoint(t)
	const attempts = 300
	delivered := 0
	for range attempts {
		got := send(t, e, newEvent("POST", r.url("/"), "x"))
		switch {
		case got.Class == "":
			delivered++
		case got.Class != retry.Connection || !got.Stale:
			t.Fatalf("%+v", got)
		}
	}
	if seen := len(r.seen()); seen != delivered {
		t.Errorf("%d delivered, but the receiver answered %d", delivered, seen)
	}
	if delivered < attempts/2 {
		t.Errorf("only %d of %d delivered", delivered, attempts)
	}
}

// dead is a connection that was used once and whose next write finds it closed: nothing leaves.
type dead struct {
	net.Conn
	closed  *atomic.Bool
	written atomic.Int64
}

func (d *dead) Write(p []byte) (int, error) {
	if d.closed.Load() {
		return 0, errors.New("broken pipe")
	}
	n, err := d.Conn.Write(p)
	d.written.Add(int64(n))
	return n, err
}

func (d *dead) Written() int64 { return d.written.Load() }
func (d *dead) OnWrite(func()) {}

// TestClosedBeforeAnyByte: only then is a fresh connection dialled within the attempt, with the whole body.
func TestClosedBeforeAnyByte(t *testing.T) {
	for _, method := range methods {
		for _, body := range []string{"", "the body"} {
			r := newRecv(t, say(ok204))
			var closed atomic.Bool
			dials := 0
			e := newEndpoint(t)
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials++
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if dials > 1 {
					return &dead{Conn: c, closed: new(atomic.Bool)}, err
				}
				return &dead{Conn: c, closed: &closed}, err
			}}
			e.RoundTripper = transport
			send(t, e, newEvent(method, r.url("/"), body))
			closed.Store(true)
			told := 0
			got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent(method, r.url("/"), body), Number: 2, Endpoint: e,
				OnWrote: func(time.Time) { told++ }})
			if got.Class != "" || got.Attempt.StatusCode != 204 || dials != 2 || told != 1 {
				t.Errorf("%s %q: %+v after %d dials, told %d times", method, body, got, dials, told)
			}
			seen := r.seen()
			if len(seen) != 2 || len(seen[0]) != len(seen[1]) {
				t.Errorf("%s %q: the receiver saw %q", method, body, seen)
			}
			transport.CloseIdleConnections()
			r.stop()
		}
	}
}

// TestAlwaysClosedBeforeAnyByte: the attempt does not go on for ever, and knows that nothing left.
func TestAlwaysClosedBeforeAnyByte(t *testing.T) {
	r := newRecv(t, say(ok204))
	closed := new(atomic.Bool)
	tries := 0
	e := newEndpoint(t)
	e.RoundTripper = tripper(func(req *http.Request) (*http.Response, error) {
		tries++
		req.Body.Close()
		trace(req).GetConn("")
		trace(req).GotConn(gotConn(&dead{closed: closed}, true))
		return nil, errors.New("broken pipe")
	})
	got := send(t, e, newEvent("POST", r.url("/"), "x"))
	if tries != 4 || got.Class != retry.Connection || !got.Unsent || !got.Stale {
		t.Errorf("%d tries, %+v", tries, got)
	}
}

// TestStaleKeepAliveOverTLS: alerts of a closing connection are not taken for a part of the request.
func TestStaleKeepAliveOverTLS(t *testing.T) {
	var seen atomic.Int64
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	transport, err := egress.New(egress.Options{Policy: egress.Policy{AllowPrivate: true}, TLS: egress.TLS{CAFile: ca}})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	e := newEndpoint(t)
	e.RoundTripper = transport
	var delivered int64
	for range 50 {
		switch got := send(t, e, newEvent("GET", srv.URL+"/", "")); {
		case got.Class == "":
			delivered++
		case got.Class != retry.Connection || !got.Stale:
			t.Fatalf("%+v", got)
		}
		srv.CloseClientConnections()
	}
	if seen.Load() != delivered || delivered < 25 {
		t.Errorf("%d of 50 delivered, the receiver saw %d", delivered, seen.Load())
	}
}

// TestAnswersToNobody: a receiver that says more than it was asked for (RFC 9112, section 9.2) is not taken at its word by
// the next request on the connection, which it refuses. net/http takes what is there already for that one's answer if it
// comes quickly enough, as it does while others wait for the connection.
func TestAnswersToNobody(t *testing.T) {
	r := newRecv(t, say("HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"+ok204))
	e := newEndpoint(t)
	e.RoundTripper = newTransport(t, 2)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				got := send(t, e, newEvent("POST", r.url("/"), "x"))
				if got.Class != retry.HTTP(400) && (got.Class != retry.Connection || !got.Stale) {
					t.Errorf("a request that was refused: %+v", got)
				}
			}
		})
	}
	wg.Wait()
}

// haunted is a transport whose first connection has been used and has an answer on it that was there before the request.
type haunted struct {
	net.Conn
	written, heard, closed int64
	calls                  int
}

func (h *haunted) Written() int64 { return h.written }
func (h *haunted) OnWrite(func()) {}
func (h *haunted) Heard() int64   { return h.heard }
func (h *haunted) Close() error   { h.closed++; return nil }

// RoundTrip has a PUT leave before the answer is seen; that of a PATCH comes when the connection is picked already, but
// before anything has left. Everything about a second request is as it should be.
func (h *haunted) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	trace.GetConn("")
	trace.GotConn(httptrace.GotConnInfo{Conn: h, Reused: true})
	h.calls++
	if h.calls > 1 || r.Method == "PUT" {
		h.written += 100
	}
	if h.calls > 1 || r.Method == "PATCH" {
		h.heard++
	}
	trace.GotFirstResponseByte()
	return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// Whether the request left decides what follows: another connection within the attempt, or another attempt.
func TestAnswerThatWasThereBefore(t *testing.T) {
	for method, want := range map[string]struct {
		class retry.Class
		calls int
	}{"POST": {"", 2}, "PATCH": {"", 2}, "PUT": {retry.Connection, 1}} {
		h := &haunted{}
		e := newEndpoint(t)
		e.RoundTripper = h
		got := send(t, e, newEvent(method, "http://127.0.0.1:9/", "x"))
		if got.Class != want.class || got.Stale != (want.class != "") || h.calls != want.calls || h.closed != 1 {
			t.Errorf("%s: %+v after %d requests, %d connections closed", method, got, h.calls, h.closed)
		}
	}
}
