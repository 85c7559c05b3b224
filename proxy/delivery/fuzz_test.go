package delivery_test

import (
	"bufio"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/proxy/delivery"
	"postern/proxy/retry"
)

// said is a receiver that answers with these bytes, as net/http reads them.
type said string

// RoundTrip implements http.RoundTripper.
func (s said) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReader(strings.NewReader(string(s))), r)
}

// Whatever a receiver answers, to whichever method, with rules about the body or without: the attempt ends in an outcome
// that is told apart, what is kept is bounded, and it panics nowhere (which would show as invalid_request).
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + zipped("1"), "HTTP/1.0 200 OK\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://[::1/%zz\r\n\r\n", "HTTP/1.1 429 x\r\nRetry-After: 99999999999999999999\r\n\r\n", "HTTP/1.1 101 Up\r\nUpgrade: x\r\n\r\n",
		"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 204 No\r\nConnection: X-A, close\r\nX-A: b\r\n\r\nrest",
		"HTTP/1.1 000 x\r\nContent-Length: -1\r\n\r\n", "x",
	} {
		f.Add(seed, "POST", true)
		f.Add(seed, "HEAD", false)
	}
	rule, sender := regexp.MustCompile("^1$"), newSender()
	f.Fuzz(func(t *testing.T, raw, method string, ruled bool) {
		if !slices.Contains([]string{"POST", "GET", "HEAD"}, method) {
			return
		}
		e := newEndpoint(t)
		e.RoundTripper = said(raw)
		if ruled {
			e.BodyMatches = rule
		}
		got := sender.Send(t.Context(), &delivery.Job{Event: newEvent(method, "http://a.example/", "x"), Number: 1, Endpoint: e, WantBody: true})
		status := got.Attempt.StatusCode
		switch {
		case got.Cut, got.Class == retry.InvalidRequest, got.Attempt.Error != string(got.Class):
			t.Fatalf("%q: %+v", raw, got)
		case got.Class == retry.Delivered && (status < 200 || status > 299):
			t.Fatalf("%q: delivered with status %d", raw, status)
		case got.Answer != nil && len(got.Answer.Body) > 1<<10, got.Response != nil && len(got.Response.Body) > 64<<10:
			t.Fatalf("%q: too much is kept", raw)
		case got.HasRetryAfter && got.RetryAfter < 0, got.Attempt.Duration < 0, got.Attempt.Duration > time.Minute:
			t.Fatalf("%q: %+v", raw, got)
		}
	})
}
