package delivery_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/proxy/delivery"
	"postern/spool"
)

// own are the lines that every request has, besides the request line and Host.
func own(attempt int) []string {
	return []string{"Postern-Attempt: " + fmt.Sprint(attempt), "Postern-Event-Id: evt_1", "X-Delivery-Timestamp: T"}
}

var timestamp = regexp.MustCompile(`(?m)^(X-Delivery-Timestamp: )\d{10}\r$`)

// TestRequestOnTheWire compares whole requests, byte for byte but for the timestamp and the order of header lines.
func TestRequestOnTheWire(t *testing.T) {
	type h = spool.Header
	for _, c := range []struct {
		name   string
		event  *spool.Event
		line   string   // request line
		fields []string // beside Host and own
	}{
		{"GET", newEvent("GET", "/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==", ""), "GET /pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w== HTTP/1.1", nil},
		{"double encoding", newEvent("GET", "/?t=AMP%20Test&u=https%3A%2F%2Fx.io%2F%3Fa%3D1%26b%3D2&lit=%2520", ""),
			"GET /?t=AMP%20Test&u=https%3A%2F%2Fx.io%2F%3Fa%3D1%26b%3D2&lit=%2520 HTTP/1.1", nil},
		{"semicolon", newEvent("GET", "/?foo=bar;moo&cid=1", ""), "GET /?foo=bar;moo&cid=1 HTTP/1.1", nil},
		{"path is not cleaned", newEvent("POST", "/api/%2F/x//y/../z?u=1", "b"), "POST /api/%2F/x//y/../z?u=1 HTTP/1.1", []string{"Content-Length: 1"}},
		{"two slashes", newEvent("GET", "//x?", ""), "GET //x? HTTP/1.1", nil},
		{"empty POST", newEvent("POST", "/", ""), "POST / HTTP/1.1", []string{"Content-Length: 0"}},
		{"empty PUT", newEvent("PUT", "/", ""), "PUT / HTTP/1.1", []string{"Content-Length: 0"}},
		{"empty PATCH", newEvent("PATCH", "/", ""), "PATCH / HTTP/1.1", []string{"Content-Length: 0"}},
		{"empty POST with a key", newEvent("POST", "/", "", h{Name: "Idempotency-Key", Value: "k"}), "POST / HTTP/1.1",
			[]string{"Content-Length: 0", "idempotency-key: k"}},
		{"HEAD", newEvent("HEAD", "/", ""), "HEAD / HTTP/1.1", nil},
		{"OPTIONS", newEvent("OPTIONS", "/", ""), "OPTIONS / HTTP/1.1", nil},
		{"TRACE", newEvent("TRACE", "/", ""), "TRACE / HTTP/1.1", nil},
		{"DELETE", newEvent("DELETE", "/", ""), "DELETE / HTTP/1.1", nil},
		{"a method of one's own", newEvent("BREW", "/", ""), "BREW / HTTP/1.1", nil},
		{"lower case is another method", newEvent("get", "/", ""), "get / HTTP/1.1", nil},
		{"GET with a body", newEvent("GET", "/", "abc"), "GET / HTTP/1.1", []string{"Content-Length: 3"}},
		{"body bytes", newEvent("POST", "/", "{ \"a\":\t\"\\u0026\",\"n\":9007199254740993,\"a\":1}\r\n\xff\xfe\x00"), "POST / HTTP/1.1", []string{"Content-Length: 48"}},
		{"repeated headers", newEvent("GET", "/", "", h{Name: "X-A", Value: "1"}, h{Name: "Accept", Value: "*/*"}, h{Name: "X-A", Value: "2"}, h{Name: "X-A", Value: ""}),
			"GET / HTTP/1.1", []string{"X-A: 1", "X-A: 2", "X-A: ", "Accept: */*"}},
		{"user agent", newEvent("GET", "/", "", h{Name: "user-agent", Value: "shop/1"}), "GET / HTTP/1.1", []string{"User-Agent: shop/1"}},
		{"its own coding", newEvent("GET", "/", "", h{Name: "Accept-Encoding", Value: "br"}), "GET / HTTP/1.1", []string{"Accept-Encoding: br"}},
		{"8-bit value", newEvent("GET", "/", "", h{Name: "X-Name", Value: "Zo\xeb"}), "GET / HTTP/1.1", []string{"X-Name: Zo\xeb"}},
		{"of the connection", newEvent("POST", "/", "b", h{Name: "Connection", Value: "close"}, h{Name: "Transfer-Encoding", Value: "chunked"},
			h{Name: "Content-Length", Value: "99"}, h{Name: "Host", Value: "evil"}, h{Name: "Expect", Value: "100-continue"}, h{Name: "Trailer", Value: "X"}),
			"POST / HTTP/1.1", []string{"Content-Length: 1"}},
		{"authorization", newEvent("GET", "/", "", h{Name: "Authorization", Value: "Bearer x"}), "GET / HTTP/1.1", []string{"Authorization: Bearer x"}},
		{"Postern's names are Postern's", newEvent("GET", "/", "", h{Name: "Postern-Attempt", Value: "9"}, h{Name: "X-Delivery-Timestamp", Value: "0"}), "GET / HTTP/1.1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecv(t, say(ok204))
			path := c.event.Target
			c.event.Target = r.url(path)
			if got := send(t, newEndpoint(t), c.event); got.Class != "" {
				t.Fatalf("%+v", got)
			}
			head, body, _ := strings.Cut(timestamp.ReplaceAllString(r.seen()[0], "${1}T\r"), "\r\n\r\n")
			got := strings.Split(head, "\r\n")
			want := append([]string{c.line, "Host: " + r.Addr().String()}, append(own(1), c.fields...)...)
			slices.Sort(got[2:])
			slices.Sort(want[2:])
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if body != string(c.event.Body) {
				t.Errorf("body %q, want %q", body, c.event.Body)
			}
		})
	}
}

func TestRepeatedHeadersKeepTheirOrder(t *testing.T) {
	r := newRecv(t, say(ok204))
	send(t, newEndpoint(t), newEvent("GET", r.url("/"), "", spool.Header{Name: "x-a", Value: "2"}, spool.Header{Name: "X-A", Value: "1"}))
	if !strings.Contains(r.seen()[0], "X-A: 2\r\nX-A: 1\r\n") {
		t.Errorf("%q", r.seen()[0])
	}
}

// stamp signs with what it is given, so that a test sees it.
type stamp struct{}

func (stamp) Sign(id string, at time.Time, body []byte) []spool.Header {
	return []spool.Header{{Name: "webhook-id", Value: id}, {Name: "webhook-timestamp", Value: fmt.Sprint(at.Unix())},
		{Name: "webhook-signature", Value: fmt.Sprintf("v1,%x", body)}}
}

func TestEndpointHeadersAndSignature(t *testing.T) {
	r := newRecv(t, say(ok204))
	e := newEndpoint(t)
	e.Sign = stamp{}
	e.Set = []spool.Header{{Name: "x-api-key", Value: "K"}, {Name: "Host", Value: "evil"}, {Name: "Webhook-Id", Value: "forged"}}
	event := newEvent("POST", strings.Replace(r.url("/"), "//", "//us%40er:p%3Aw@", 1), "\x01\x02",
		spool.Header{Name: "X-Api-Key", Value: "from the application"}, spool.Header{Name: "webhook-signature", Value: "forged"})
	got := newSender().Send(t.Context(), &delivery.Job{Event: event, Number: 7, Endpoint: e})
	lines := r.last(t)
	for _, want := range []string{"X-Api-Key: K", "Webhook-Id: evt_1", "Webhook-Signature: v1,0102", "Postern-Attempt: 7",
		"Host: " + r.Addr().String(), "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("us@er:p:w"))} {
		if !has(lines, want) {
			t.Errorf("no line %q in %q", want, lines)
		}
	}
	if strings.Contains(strings.Join(lines, "\n"), "forged") || strings.Contains(strings.Join(lines, "\n"), "application") {
		t.Errorf("what should have been replaced was sent: %q", lines)
	}
	if got.Attempt.Number != 7 || got.Class != "" {
		t.Errorf("%+v", got)
	}
}

func TestUserInfoYieldsToTheApplication(t *testing.T) {
	r := newRecv(t, say(ok204))
	send(t, newEndpoint(t), newEvent("GET", strings.Replace(r.url("/"), "//", "//u:p@", 1), "", spool.Header{Name: "authorization", Value: "Bearer x"}))
	if lines := r.last(t); !has(lines, "Authorization: Bearer x") || strings.Contains(strings.Join(lines, "\n"), "Basic") {
		t.Errorf("%q", lines)
	}
}

// TestNamedEndpoint: the url is read at each attempt, and what followed the name is appended to it.
func TestNamedEndpoint(t *testing.T) {
	r := newRecv(t, say(ok204))
	e := newEndpoint(t)
	event := newEvent("GET", "/extra?cid=1", "")
	event.Named = true
	for _, path := range []string{"/postback?aff=7", "/corrected/"} {
		e.URL = mustParse(t, r.url(path))
		send(t, e, event)
	}
	event.Target = ""
	send(t, e, event)
	var got []string
	for _, raw := range r.seen() {
		line, _, _ := strings.Cut(raw, "\r\n")
		got = append(got, line)
	}
	want := []string{"GET /postback/extra?aff=7&cid=1 HTTP/1.1", "GET /corrected/extra?cid=1 HTTP/1.1", "GET /corrected/ HTTP/1.1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOnWrote: told once, after the last byte left and before the answer is needed, whatever the body's size.
func TestOnWrote(t *testing.T) {
	for _, size := range []int{0, 1, 3000, 3700, 3800, 4000, 4095, 4096, 4097, 100_000} {
		told := make(chan time.Time, 2)
		at := make(chan time.Time, 1)
		r := newRecv(t, func(c net.Conn, _ int) bool {
			select {
			case when := <-told: // before there is an answer
				at <- when
			case <-t.Context().Done():
			}
			return say(ok204)(c, 1)
		})
		start := time.Now()
		got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent("POST", r.url("/"), strings.Repeat("x", size)), Number: 1,
			Endpoint: newEndpoint(t), OnWrote: func(at time.Time) { told <- at }})
		if got.Class != "" || (<-at).Before(start) || len(told) != 0 {
			t.Errorf("size %d: %+v, told %d times more", size, got, len(told))
		}
	}
}

func TestOnWroteIsSilentWhereNothingLeft(t *testing.T) {
	r := newRecv(t, say(ok204))
	r.stop()
	got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent("POST", r.url("/"), "x"), Number: 1, Endpoint: newEndpoint(t),
		OnWrote: func(time.Time) { t.Error("told that it left") }})
	if !got.Unsent || got.Class != "connect" {
		t.Errorf("%+v", got)
	}
}

// writes counts how often something was written to a connection.
type writes struct {
	net.Conn
	n atomic.Int64
}

func (w *writes) Write(p []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(p)
}

// TestARequestIsOneWrite: header and body of an ordinary request leave together. net/http sends the header ahead, in a
// packet and a system call of its own, where it does not know the type of the body.
func TestARequestIsOneWrite(t *testing.T) {
	r := newRecv(t, say(ok204))
	for _, event := range []*spool.Event{
		newEvent("POST", r.url("/"), strings.Repeat("x", 500)), newEvent("POST", r.url("/"), ""), newEvent("GET", r.url("/"), ""),
	} {
		var w writes
		e := newEndpoint(t)
		e.RoundTripper = &http.Transport{DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
				w.Conn, err = new(net.Dialer).DialContext(ctx, network, addr)
				return &w, err
			}}
		if got := send(t, e, event); got.Class != "" || w.n.Load() != 1 {
			t.Errorf("%s with %d bytes took %d writes: %+v", event.Method, len(event.Body), w.n.Load(), got)
		}
	}
}

// TestAnIdleConnectionKeepsNoEvent: bodies are large, and a connection may be idle for long.
func TestAnIdleConnectionKeepsNoEvent(t *testing.T) {
	r := newRecv(t, say(ok204))
	e := newEndpoint(t)
	for _, onWrote := range []func(time.Time){nil, func(time.Time) {}} {
		gone := make(chan struct{})
		func() {
			event := newEvent("POST", r.url("/"), "body")
			runtime.AddCleanup(event, func(gone chan struct{}) { close(gone) }, gone)
			got := newSender().Send(t.Context(), &delivery.Job{Event: event, Number: 1, Endpoint: e, OnWrote: onWrote})
			if got.Class != "" {
				t.Fatalf("%+v", got)
			}
		}()
		for until := time.Now().Add(time.Minute); ; {
			runtime.GC()
			select {
			case <-gone:
			case <-time.After(time.Millisecond):
				if time.Now().Before(until) {
					continue
				}
				t.Errorf("told when it was written: %v; the event is still in memory", onWrote != nil)
			}
			break
		}
	}
}
