package ingest_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/proxy/ingest"
	"postern/proxy/target"
	"postern/spool"
)

// serve gives raw bytes to the handler as a server would, where they are a request at all.
func serve(raw string) (w *httptest.ResponseRecorder, e *spool.Event, ok bool) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return nil, nil, false
	}
	kept := &fakeSpool{}
	partner, _ := target.Parse("https://partner.example/postback?aff=7")
	h := ingest.New(ingest.Config{Listen: []string{"127.0.0.1:8089"}}, ingest.Parts{Book: fakeBook{"partner-a": {Name: "partner-a", URL: partner}}, Spool: kept})
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if len(kept.events) == 1 {
		e = kept.events[0]
	}
	return w, e, true
}

// Whatever a request says, it is taken in with a target that can be sent and is a part of what was said, or refused
// with a whole problem.
func checkServed(t *testing.T, raw string, w *httptest.ResponseRecorder, e *spool.Event) {
	t.Helper()
	if e == nil {
		var p struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Detail == "" || w.Code < 400 {
			t.Fatalf("%q: %d %s", raw, w.Code, w.Body)
		}
		return
	}
	if w.Code != http.StatusAccepted {
		t.Fatalf("%q: %d", raw, w.Code)
	}
	if e.Named {
		if err := target.CheckSuffix(e.Target); err != nil || !strings.Contains(raw, e.Target) {
			t.Fatalf("%q: suffix %q, %v", raw, e.Target, err)
		}
		return
	}
	parsed, err := target.Parse(e.Target)
	if err != nil || parsed.Origin() != e.Endpoint {
		t.Fatalf("%q: target %q, %v", raw, e.Target, err)
	}
	if !strings.Contains(raw, strings.TrimPrefix(parsed.PathQuery, "/")) {
		t.Fatalf("%q: target %q", raw, e.Target)
	}
}

func FuzzTarget(f *testing.F) {
	for _, seed := range [][2]string{{"/https://x.example/pb?cid=a+b%20c", ""}, {"/https:/x.example//a", ""}, {"/to/partner-a/x?y", ""},
		{"/", "https://u:p@x.example/?a;b"}, {"http://x.example/%zz", ""}, {"http://localhost:8089/to/partner-a?x", ""}, {"*", "http://[::1]/"}, {"/to/%zz", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, uri, header string) {
		raw := "GET " + uri + " HTTP/1.1\r\nHost: localhost\r\n"
		if header != "" {
			raw += "Postern-Url: " + header + "\r\n"
		}
		raw += "\r\n"
		if w, e, ok := serve(raw); ok {
			checkServed(t, raw, w, e)
		}
	})
}

func FuzzControl(f *testing.F) {
	for _, seed := range []string{"Postern-Delay: 5s", "Postern-Not-Before: 2030-01-01T00:00:00Z\r\nPostern-Ttl: 1h", "Postern-Event-Id: a:b",
		"Postern-Max-Attempts: 3\r\nPostern-Timeout: 10", "Prefer: a=\"b,c\", wait=0;x", "Connection: x, Postern-Delay", "Idempotency-Key: k", "Postern-X: 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, headers string) {
		raw := "GET /https://x.example/ HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n\r\n"
		w, e, ok := serve(raw)
		if !ok {
			return
		}
		checkServed(t, raw, w, e)
		if e == nil {
			return
		}
		if e.TTL < 0 || e.Timeout < 0 || e.Timeout > ingest.DefaultMaxTimeout || e.MaxAttempts < 0 || e.MaxAttempts > 20 || !e.NotBefore.IsZero() && !e.NotBefore.After(e.AcceptedAt) {
			t.Fatalf("%q: %+v", raw, e)
		}
		for _, h := range e.Headers {
			if strings.HasPrefix(h.Name, "Postern-") || h.Name == "Connection" || h.Name == "Host" || strings.HasPrefix(h.Name, "Proxy-") {
				t.Fatalf("%q: %s passes on", raw, h.Name)
			}
		}
	})
}
