package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"postern/proxy/delivery"
	"postern/proxy/egress"
	"postern/proxy/retry"
	"postern/proxy/target"
	"postern/spool"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func trace(r *http.Request) *httptrace.ClientTrace { return httptrace.ContextClientTrace(r.Context()) }

func gotConn(c net.Conn, reused bool) httptrace.GotConnInfo {
	return httptrace.GotConnInfo{Conn: c, Reused: reused}
}

func TestStatuses(t *testing.T) {
	for status, want := range map[string]retry.Class{
		"200 OK": "", "201 Created": "", "202 Accepted": "", "204 No Content": "", "206 Partial Content": "", "299 Odd": "",
		"300 Choices": "redirect", "302 Found": "redirect", "304 Not Modified": "redirect", "400 Bad": "http_400", "401 No": "http_401",
		"404 No": "http_404", "410 Gone": "http_410", "418 Teapot": "http_418", "429 Slow": "http_429", "500 Oops": "http_500",
		"503 Busy": "http_503", "599 Odd": "http_599", "799 Odd": "http_799",
	} {
		r := newRecv(t, say("HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n"))
		before := time.Now()
		got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x"))
		if got.Class != want || got.Attempt.Error != string(want) || fmt.Sprint(got.Attempt.StatusCode) != status[:3] {
			t.Errorf("%s: %+v", status, got)
		}
		if got.Cut || got.Unsent || got.Stale || !got.Sampled || (got.Answer == nil) != (want == "") {
			t.Errorf("%s: %+v", status, got)
		}
		if a := got.Attempt; a.Number != 1 || a.Duration <= 0 || a.StartedAt.Before(before.Truncate(time.Microsecond)) || a.StartedAt.Location() != time.UTC ||
			a.StartedAt.Nanosecond()%1000 != 0 {
			t.Errorf("%s: %+v", status, a)
		}
	}
}

// TestRedirects: one request, the address kept, no connection to where it leads, and none of it parsed on the way.
func TestRedirects(t *testing.T) {
	other := newRecv(t, say(ok204))
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"/elsewhere", other.url("/x"), "", "http://[bad", "//", "http://u:p@127.0.0.1:1/%zz"} {
			for _, body := range []string{"", "x"} {
				r := newRecv(t, say(fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, location)))
				got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), body, spool.Header{Name: "X-Api-Key", Value: "K"}))
				if got.Class != retry.Redirect || got.Attempt.StatusCode != status || got.Answer == nil || got.Answer.Location != location {
					t.Errorf("%d to %q: %+v, %+v", status, location, got, got.Answer)
				}
				if seen := len(r.seen()); seen != 1 {
					t.Errorf("%d to %q: %d requests", status, location, seen)
				}
				r.stop()
			}
		}
	}
	if seen := other.seen(); seen != nil {
		t.Errorf("a redirect was followed: %q", seen)
	}
}

func TestRetryAfterIsHandedOn(t *testing.T) {
	r := newRecv(t, say("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"))
	if got := send(t, newEndpoint(t), newEvent("GET", r.url("/"), "")); !got.HasRetryAfter || got.RetryAfter != 7*time.Second {
		t.Errorf("%+v", got)
	}
	r = newRecv(t, say("HTTP/1.1 429 Slow\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n"))
	if got := send(t, newEndpoint(t), newEvent("GET", r.url("/"), "")); got.HasRetryAfter || got.RetryAfter != 0 {
		t.Errorf("%+v", got)
	}
}

func TestInformationalAnswersAreIgnored(t *testing.T) {
	r := newRecv(t, say(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 9)+ok204))
	if got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x")); got.Class != "" || got.Attempt.StatusCode != 204 {
		t.Errorf("%+v", got)
	}
	r = newRecv(t, say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nnot a body"))
	if got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x")); got.Class != "http_101" || len(got.Answer.Body) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestBrokenAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "half a header": "HTTP/1.1 200 OK\r\nContent-Le", "no HTTP": "SSH-2.0-OpenSSH\r\n\r\n",
		"an endless header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n",
	} {
		r := newRecv(t, func(c net.Conn, n int) bool { say(text)(c, n); return false })
		if got := send(t, newEndpoint(t), newEvent("POST", r.url("/"), "x")); got.Class != retry.Connection || got.Attempt.StatusCode != 0 || got.Unsent || got.Sampled {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestConnectionClasses(t *testing.T) {
	gone := newRecv(t, say(ok204))
	gone.stop()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came through") }))
	plain.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer plain.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	deaf := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }}
	own, err := egress.New(egress.Options{Policy: egress.Policy{AllowPrivate: true}, Resolver: deaf})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	e := newEndpoint(t)
	e.RoundTripper = own
	bare := *e // net/http's own transport, whose errors tell no class
	bare.RoundTripper = &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Resolver: deaf}).DialContext}
	for url, want := range map[string]retry.Class{
		gone.url("/"): retry.Connect, strings.Replace(plain.URL, "http", "https", 1): retry.TLS, untrusted.URL: retry.TLS,
		"http://nowhere.invalid/": retry.DNS,
	} {
		for _, endpoint := range []*delivery.Endpoint{e, &bare} {
			if got := send(t, endpoint, newEvent("POST", url, "x")); got.Class != want || !got.Unsent || got.Sampled || got.Stale {
				t.Errorf("%s: %+v, want %s", url, got, want)
			}
		}
	}
}

func TestUntracedTransports(t *testing.T) {
	for _, c := range []struct {
		err    error
		want   retry.Class
		unsent bool
	}{
		{&net.DNSError{}, retry.DNS, true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, retry.Connect, true},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, retry.Connection, false},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, retry.TLS, false},
		{errors.New("what"), retry.Connection, false},
	} {
		e := newEndpoint(t)
		e.RoundTripper = tripper(func(*http.Request) (*http.Response, error) { return nil, c.err })
		if got := send(t, e, newEvent("GET", "http://a.example/", "")); got.Class != c.want || got.Unsent != c.unsent {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}

func TestBlocked(t *testing.T) {
	e := newEndpoint(t)
	asked := 0
	e.Blocked = func(t target.Target) error {
		asked++
		if t.Hostname() == "10.0.0.1" {
			return errors.New("no")
		}
		return nil
	}
	r := newRecv(t, say(ok204))
	for range 2 {
		if got := send(t, e, newEvent("GET", "http://10.0.0.1/", "")); got.Class != retry.BlockedAddress || !got.Unsent || got.Sampled {
			t.Errorf("%+v", got)
		}
	}
	if got := send(t, e, newEvent("GET", r.url("/"), "")); got.Class != "" || asked != 3 {
		t.Errorf("%+v after asking %d times", got, asked)
	}
	// The dialler's word counts as well: metadata addresses are closed even to named endpoints.
	e.Blocked = nil
	if got := send(t, e, newEvent("GET", "http://169.254.169.254/", "")); got.Class != retry.BlockedAddress {
		t.Errorf("%+v", got)
	}
}

func TestInvalidRequests(t *testing.T) {
	r := newRecv(t, say(ok204))
	named := newEvent("GET", "extra", "")
	named.Named = true
	for name, event := range map[string]*spool.Event{
		"target":         newEvent("GET", "not a url", ""),
		"scheme":         newEvent("GET", "ftp://a.example/", ""),
		"raw byte":       newEvent("GET", r.url("/\xff"), ""),
		"method":         newEvent("GET /x", r.url("/"), ""),
		"no method":      newEvent("", r.url("/"), ""),
		"CONNECT":        newEvent("CONNECT", r.url("/"), ""),
		"header name":    newEvent("GET", r.url("/"), "", spool.Header{Name: "X Y", Value: "1"}),
		"no header name": newEvent("GET", r.url("/"), "", spool.Header{Value: "1"}),
		"header value":   newEvent("GET", r.url("/"), "", spool.Header{Name: "X", Value: "1\r\nY: 2"}),
		"what is joined": named,
	} {
		got := send(t, newEndpoint(t), event)
		if got.Class != retry.InvalidRequest || !got.Unsent || got.Attempt.Error != "invalid_request" || got.Attempt.Duration < 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	e := newEndpoint(t)
	e.Set = []spool.Header{{Name: "X-Api-Key", Value: "K\n"}}
	if got := send(t, e, newEvent("GET", r.url("/"), "")); got.Class != retry.InvalidRequest {
		t.Errorf("an endpoint's header: %+v", got)
	}
	if seen := r.seen(); seen != nil {
		t.Errorf("%q", seen)
	}
}

type panicking struct{ value any }

func (p panicking) Sign(string, time.Time, []byte) []spool.Header { panic(p.value) }

func TestPanics(t *testing.T) {
	var empty []int
	for name, signer := range map[string]delivery.Signer{"a value with a secret": panicking{"SEC1"}, "an error": panicking{errors.New("SEC2")},
		"the runtime's": signFunc(func() { _ = empty[len(name(t))] })} {
		var log bytes.Buffer
		e := newEndpoint(t)
		e.Sign = signer
		got := delivery.New(delivery.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}).Send(t.Context(),
			&delivery.Job{Event: newEvent("GET", "http://u:SEC3@a.example/?SEC4", "SEC5"), Number: 3, Endpoint: e})
		if got.Class != retry.InvalidRequest || got.Attempt.Number != 3 || !got.Unsent || got.Attempt.Error != "invalid_request" {
			t.Errorf("%s: %+v", name, got)
		}
		if text := log.String(); !strings.Contains(text, "evt_1") || !strings.Contains(text, "partner-a") || strings.Contains(text, "SEC") {
			t.Errorf("%s: log %s", name, text)
		}
	}
}

func name(t *testing.T) string { return t.Name() }

type signFunc func()

func (f signFunc) Sign(string, time.Time, []byte) []spool.Header { f(); return nil }

// TestPanicAfterSending: the request was on the wire, and the result says so.
func TestPanicAfterSending(t *testing.T) {
	e := newEndpoint(t)
	e.RoundTripper = tripper(func(r *http.Request) (*http.Response, error) {
		trace(r).GetConn("")
		trace(r).GotConn(gotConn(nil, false))
		panic("late")
	})
	if got := send(t, e, newEvent("POST", "http://a.example/", "x")); got.Class != retry.InvalidRequest || got.Unsent {
		t.Errorf("%+v", got)
	}
}

func TestCutBeforeItBegan(t *testing.T) {
	r := newRecv(t, say(ok204))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := newSender().Send(ctx, &delivery.Job{Event: newEvent("POST", r.url("/"), "x"), Number: 1, Endpoint: newEndpoint(t)})
	if !got.Cut || !got.Unsent || len(r.seen()) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestNoSecretsInResults: whatever goes wrong, nothing of the request is repeated in what is logged and kept.
func TestNoSecretsInResults(t *testing.T) {
	r := newRecv(t, func(net.Conn, int) bool { return false })
	e := newEndpoint(t)
	e.Set = []spool.Header{{Name: "X-Api-Key", Value: "SEC4"}}
	address := strings.TrimPrefix(r.url(""), "http://")
	for _, raw := range []string{"https://u:SEC1@127.0.0.1:1/SEC2?token=SEC2", "http://u:SEC1@" + address + "/?SEC2", "http://u:SEC1@10.0.0.1:99999/?SEC2",
		"http://SEC1:SEC1@[bad/SEC2", "/SEC2 SEC2", "http://u:SEC1@169.254.169.254/?SEC2"} {
		event := newEvent("POST", raw, "SEC3", spool.Header{Name: "Authorization", Value: "Bearer SEC3"})
		var log bytes.Buffer
		got := delivery.New(delivery.Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}).
			Send(t.Context(), &delivery.Job{Event: event, Number: 1, Endpoint: e})
		if text := fmt.Sprintf("%+v %+v", got, got.Answer); got.Class == "" || strings.Contains(text, "SEC") || log.Len() > 0 {
			t.Errorf("%s, log %q", text, log.String())
		}
	}
}
