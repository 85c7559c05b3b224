package ingest_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/proxy/guard"
	"postern/proxy/ingest"
	"postern/spool"
)

// refused sends a request that must be refused, nothing of it spooled and nothing secret said.
func (d *door) refused(t *testing.T, request string, status int, reason, says string) reply {
	t.Helper()
	got := d.send(request)
	if got.status != status {
		t.Fatalf("status %d, want %d: %s", got.status, status, got.body)
	}
	if detail := got.detail(t); !strings.Contains(detail, says) {
		t.Errorf("the detail does not say %q: %s", says, detail)
	} else if strings.HasSuffix(detail, "?.") || strings.HasSuffix(detail, "..") {
		t.Errorf("the sentence ends twice: %s", detail)
	}
	if strings.Contains(got.raw, "SECRET") {
		t.Errorf("a secret shows: %s", got.raw)
	}
	if events := d.spool.all(); len(events) != 0 {
		t.Errorf("spooled: %+v", events[0])
	}
	d.counts.mu.Lock()
	defer d.counts.mu.Unlock()
	if last := d.counts.rejected[len(d.counts.rejected)-1]; last != reason || !slices.Contains(ingest.Reasons(), last) {
		t.Errorf("counted as %s, want %s", last, reason)
	}
	return got
}

func TestRefusals(t *testing.T) {
	d := open(t)
	tests := []struct {
		name, request string
		status        int
		reason, says  string
	}{
		{"no target", "GET / HTTP/1.1\nHost: HOST", 400, "no_target", "Postern-Url"},
		{"query alone", "GET /?SECRET HTTP/1.1\nHost: HOST", 400, "no_target", "/to/NAME"},
		{"asterisk", "OPTIONS * HTTP/1.1\nHost: HOST", 400, "no_target", "POST /https://"},
		{"two slashes", "GET //partner.example/SECRET HTTP/1.1\nHost: HOST", 400, "no_target", "must begin with http:// or https://"},
		{"scheme missing", "GET /partner.example/SECRET HTTP/1.1\nHost: HOST", 400, "no_target", "must begin with http:// or https://"},
		{"another scheme", "GET /ftp://partner.example/SECRET HTTP/1.1\nHost: HOST", 400, "no_target", "must begin with http:// or https://"},
		{"something else", "GET /favicon HTTP/1.1\nHost: HOST", 400, "no_target", "POST /https://"},
		{"name missing", "GET /to/ HTTP/1.1\nHost: HOST", 400, "no_target", "name is missing"},
		{"name missing, no slash", "GET /to HTTP/1.1\nHost: HOST", 400, "no_target", "name is missing"},
		{"host missing", "GET /https:///SECRET HTTP/1.1\nHost: HOST", 400, "bad_target", "host is missing"},
		{"fragment", "GET /https://x.example/?SECRET#x HTTP/1.1\nHost: HOST", 400, "bad_target", "fragment"},
		{"fragment, named", "GET /to/partner-a/#SECRET HTTP/1.1\nHost: HOST", 400, "bad_target", "fragment"},
		{"8-bit in the path", "GET /https://x.example/?q=SECRETé HTTP/1.1\nHost: HOST", 400, "bad_target", "non-ASCII"},
		{"8-bit, as a proxy", "GET http://x.example/?q=SECRETé HTTP/1.1\nHost: x.example", 400, "bad_target", "non-ASCII"},
		{"8-bit in the header", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/?q=SECRETé", 400, "bad_target", "Postern-Url: the target has a blank"},
		{"blank in the header", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/?q=SECRET b", 400, "bad_target", "Postern-Url: the target has a blank"},
		{"empty header", "GET / HTTP/1.1\nHost: HOST\nPostern-Url:", 400, "bad_target", "empty"},
		{"path in the header", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: /SECRET", 400, "bad_target", "Postern-Url: the target must begin with"},
		{"bad port", "GET /https://u:SECRET@x.example:99999/ HTTP/1.1\nHost: HOST", 400, "bad_target", "port"},
		{"not to be put on a wire", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example//%zz", 400, "bad_target", "request line"},
		{"another scheme, as a proxy", "GET ftp://x.example/SECRET HTTP/1.1\nHost: x.example", 400, "bad_target", "http:// or https://"},
		{"header twice", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/\nPostern-Url: https://y.example/", 400, "bad_header", "Postern-Url: it is given more than once"},
		{"path and header", "GET /https://x.example/ HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/", 400, "bad_target", "one way only"},
		{"named and header", "GET /to/partner-a HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/", 400, "bad_target", "one way only"},
		{"query and header", "GET /?SECRET HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/", 400, "bad_target", "put it into Postern-Url"},
		{"proxy and header", "GET http://x.example/ HTTP/1.1\nHost: x.example\nPostern-Url: https://x.example/", 400, "bad_target", "one way only"},
		{"not allowed", "GET /https://x.forbidden/SECRET HTTP/1.1\nHost: HOST", 403, "forbidden_target", "targets.allow"},
		{"not allowed, as a proxy", "GET http://x.forbidden/SECRET HTTP/1.1\nHost: x.forbidden", 403, "forbidden_target", "targets.allow"},
		{"ourselves", "GET /http://HOST/https://x.example/ HTTP/1.1\nHost: HOST", 403, "forbidden_target", "in circles"},
		{"ourselves by header", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: http://HOST/", 403, "forbidden_target", "in circles"},
		{"our other listener", "GET http://localhost:18090/api HTTP/1.1\nHost: localhost:18090", 403, "forbidden_target", "in circles"},
		{"our other listener, named", "GET /to/loop HTTP/1.1\nHost: HOST", 403, "forbidden_target", "in circles"},
		{"our other listener, odd names", "GET /http://[::ffff:7f00:1]:18090/ HTTP/1.1\nHost: HOST", 403, "forbidden_target", "in circles"},
		{"our other listener, unspecified", "GET /http://0.0.0.0:18090/ HTTP/1.1\nHost: HOST", 403, "forbidden_target", "in circles"},
		{"our other listener, trailing dot", "GET /http://LocalHost.:18090/ HTTP/1.1\nHost: HOST", 403, "forbidden_target", "in circles"},
		{"foreign Host", "GET /https://x.example/ HTTP/1.1\nHost: evil.example", 403, "foreign_page", "Host"},
		{"foreign Origin", "POST /https://x.example/ HTTP/1.1\nHost: HOST\nOrigin: https://evil.example\nContent-Length: 0", 403, "foreign_page", "Origin"},
		{"cross-site", "GET /https://x.example/ HTTP/1.1\nHost: HOST\nSec-Fetch-Site: cross-site", 403, "foreign_page", "Sec-Fetch-Site"},
		{"foreign Origin, ours in absolute form", "GET http://HOST/https://x.example/ HTTP/1.1\nHost: HOST\nOrigin: https://evil.example", 403, "foreign_page", "Origin"},
		{"no such endpoint", "GET /to/partner-b HTTP/1.1\nHost: HOST", 404, "unknown_endpoint", `"partner-b"`},
		{"no such endpoint, odd name", "GET /to/a=SECRET@x HTTP/1.1\nHost: HOST", 404, "unknown_endpoint", "of this name"},
		{"CONNECT", "CONNECT x.example:443 HTTP/1.1\nHost: x.example:443", 405, "connect", "POST /https://"},
		{"CONNECT with a path", "CONNECT /https://x.example/ HTTP/1.1\nHost: HOST", 405, "connect", "POST /https://"},
		{"too large", fmt.Sprintf("POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: %d\n\n%s", maxBody+1, strings.Repeat("x", maxBody+1)), 413, "too_large", "100000 bytes"},
		{"too large, not asked to continue", "POST /https://x.example/ HTTP/1.1\nHost: HOST\nExpect: 100-continue\nContent-Length: 9999999999", 413, "too_large", "spool.max_event_bytes"},
		{"too large, chunked", "POST /https://x.example/ HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked\n\n" +
			"c350\r\n" + strings.Repeat("x", 50_000) + "\r\nc351\r\n" + strings.Repeat("x", 50_001) + "\r\n0\r\n\r\n", 413, "too_large", "100000 bytes"},
		{"broken chunks", "POST /https://x.example/ HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked\n\nzz\r\n", 400, "broken_body", "chunks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := d.refused(t, tt.request, tt.status, tt.reason, tt.says)
			if tt.status == 405 && !strings.Contains(got.header.Get("Allow"), "POST") {
				t.Errorf("Allow: %q", got.header.Get("Allow"))
			}
			if strings.Contains(got.raw, "100 Continue") {
				t.Error("asked for a body that is refused")
			}
		})
	}
	if d.log.String() != "" {
		t.Errorf("logged: %s", d.log)
	}
}

// What cannot be parsed is answered by net/http; all that matters is that nothing of it is spooled.
func TestUnparsable(t *testing.T) {
	d := open(t)
	for _, request := range []string{
		"GET /https://x.example/a b HTTP/1.1\nHost: HOST",
		"GET /https://x.example/ HTTP/1.1\nHost: HOST\nX-A: a\x01b",
		"GET /https://x.example/ HTTP/1.1\nHost: HOST\nX-A: a\x00b",
		"GET /https://x.example/ HTTP/1.1\nHost: HOST\nX A: b",
		"GET /https://x.example/ HTTP/1.1\nHost: HOST\nHost: HOST",
		"GET /https://x.example/ HTTP/1.1",
		"POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 1\nContent-Length: 2\n\nab",
		"POST /https://x.example/ HTTP/1.1\nHost: HOST\nTransfer-Encoding: gzip\n\nab",
	} {
		if got := d.send(request); got.status < 400 || got.status > 501 {
			t.Errorf("%q: %d", request, got.status)
		}
	}
	if events := d.spool.all(); len(events) != 0 {
		t.Errorf("spooled: %+v", events[0])
	}
}

func TestWhatTheSpoolSays(t *testing.T) {
	d := open(t)
	tests := []struct {
		err    error
		status int
		reason string
		says   string
	}{
		{spool.ErrFull, 503, "spool_full", "spool.max_bytes"},
		{fmt.Errorf("append: %w", spool.ErrEndpointFull), 503, "endpoint_full", "spool.max_endpoint_share"},
		{spool.ErrUnwritable, 503, "spool_unwritable", "disk"},
		{spool.ErrClosed, 503, "stopping", "stopping"},
		{spool.ErrUnknownOutcome, 503, "unknown_outcome", "Idempotency-Key"},
		{errors.New("SECRET"), 503, "unknown_outcome", "may or may not be stored"},
		{spool.ErrReused, 422, "reused", "Idempotency-Key"},
		{spool.ErrIDTaken, 422, "reused", "another endpoint"},
	}
	for _, tt := range tests {
		t.Run(tt.err.Error(), func(t *testing.T) {
			d.spool.fail = tt.err
			got := d.refused(t, "POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 2\n\nab", tt.status, tt.reason, tt.says)
			if seconds := got.header.Get("Retry-After"); (tt.status == 503) != (seconds != "" && seconds != "0") {
				t.Errorf("Retry-After: %q", seconds)
			}
		})
	}
	if len(d.counts.accepted) != 0 {
		t.Errorf("counted as accepted: %v", d.counts.accepted)
	}
}

func TestToken(t *testing.T) {
	d := openWith(t, &guard.Config{Tokens: func() [][]byte { return [][]byte{[]byte("opensesame")} }, TokenHeader: "Postern-Token"})
	d.refused(t, "GET /https://x.example/ HTTP/1.1\nHost: anything", 401, "token", "Postern-Token")
	d.refused(t, "GET http://x.example/ HTTP/1.1\nHost: x.example\nPostern-Token: SECRET", 401, "token", "wrong")
	e := d.accepted("GET /https://x.example/ HTTP/1.1\nHost: anything\nAuthorization: Bearer theirs\nPostern-Token: opensesame")
	if got := values(e, "Authorization"); len(got) != 1 || got[0] != "Bearer theirs" || values(e, "Postern-Token") != nil {
		t.Errorf("headers: %v", e.Headers)
	}
}

func TestStop(t *testing.T) {
	d := open(t)
	d.accepted("GET /https://x.example/ HTTP/1.1\nHost: HOST")
	conn := d.dial()
	defer func() { _ = conn.Close() }()
	d.handler.Stop(1500 * time.Millisecond)
	d.handler.Stop(time.Hour)
	if _, err := fmt.Fprint(conn, wire(d.addr, "GET /https://x.example/ HTTP/1.1\nHost: HOST")); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "2" || !resp.Close {
		t.Errorf("%d, Retry-After %q, close %v", resp.StatusCode, resp.Header.Get("Retry-After"), resp.Close)
	}
	if len(d.spool.all()) != 1 {
		t.Error("spooled after Stop")
	}
}
