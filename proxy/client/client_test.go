package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseAddress(t *testing.T) {
	for in, want := range map[string][2]string{
		"http://127.0.0.1:8090":   {"http://127.0.0.1:8090", ""},
		"http://127.0.0.1:8090/":  {"http://127.0.0.1:8090", ""},
		"https://admin.example":   {"https://admin.example", ""},
		"localhost:8090":          {"http://localhost:8090", ""},
		":8090":                   {"http://127.0.0.1:8090", ""},
		"0.0.0.0:8090":            {"http://127.0.0.1:8090", ""},
		"[::]:8090":               {"http://[::1]:8090", ""},
		"[::1]:8090":              {"http://[::1]:8090", ""},
		"unix:/run/postern.sock":  {"http://localhost", "/run/postern.sock"},
		"unix:///run/a.sock":      {"http://localhost", "/run/a.sock"},
		"unix:relative/path.sock": {"http://localhost", "relative/path.sock"},
	} {
		base, socket, err := parseAddress(in)
		if err != nil || base != want[0] || socket != want[1] {
			t.Errorf("parseAddress(%q) = %q, %q, %v; want %q", in, base, socket, err, want)
		}
	}
	for _, in := range []string{"unix:", "ftp://x", "http://", "http://h/path", "http://h?q=1", "http://user:PW1@h", "http://h:\x00"} {
		_, _, err := parseAddress(in)
		if err == nil {
			t.Errorf("parseAddress(%q) was taken", in)
		} else if strings.Contains(err.Error(), "PW1") {
			t.Errorf("the error repeats user info: %v", err)
		}
	}
}

func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if token, err := readToken(write("good", "  secret \nsecond\n")); err != nil || token != "secret" {
		t.Errorf("got %q, %v", token, err)
	}
	for _, path := range []string{write("empty", "\n"), write("two", "a b\n"), write("nul", "a\x00b\n"), filepath.Join(dir, "absent")} {
		if _, err := NewAdmin(Config{TokenFile: path}); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
	if token, err := readToken(""); token != "" || err != nil {
		t.Errorf("no file: %q, %v", token, err)
	}
}

// serve starts a server on loopback and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func newAdmin(t *testing.T, cfg Config) *Admin {
	t.Helper()
	a, err := NewAdmin(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, kind, body string
		status           int
		want             string
	}{
		{"a problem", "application/problem+json", `{"title":"Not found","detail":"no such event"}`, 404, "Not found: no such event (status 404)"},
		{"a problem with its type", "application/problem+json", `{"type":"urn:x:y","title":"T","detail":"d"}`, 403, "T: d (status 403)"},
		{"a problem of ours", "application/problem+json", `{"type":"urn:postern:problem:no-such-event","title":"No such event","detail":"There is no trace of it."}`, 404, "No such event: There is no trace of it"},
		{"a title said again", "application/problem+json", `{"type":"urn:postern:problem:x","title":"The event was delivered","detail":"The event was delivered and is gone."}`, 409, "The event was delivered and is gone"},
		{"a problem without detail", "application/problem+json", `{"title":"Stopping"}`, 503, "Stopping (status 503)"},
		{"a page of somebody else", "text/html", `<b>secret</b>`, 502, "Bad Gateway (status 502)"},
		{"a redirect, not followed", "text/html", ``, 302, "Found (status 302)"},
		{"a broken problem", "application/problem+json", `{`, 500, "Internal Server Error (status 500)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAdmin(t, Config{Address: serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})})
			_, err := a.Status(t.Context())
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Status != c.status || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if ok && (refused.Type == "urn:x:y") != strings.Contains(c.body, "urn:x:y") {
				t.Errorf("type %q of %s", refused.Type, c.body)
			}
		})
	}
}

func TestNotPosternsJSON(t *testing.T) {
	a := newAdmin(t, Config{Address: serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") })})
	if _, err := a.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "is it a Postern") {
		t.Errorf("got %v", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()
	for address, want := range map[string]string{
		closed: "no Postern answers at " + closed + ": connection refused",
		"unix:" + filepath.Join(t.TempDir(), "x"): "there is no such socket",
	} {
		a := newAdmin(t, Config{Address: address})
		_, err := a.Event(t.Context(), "SECRET", true)
		if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
		if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("the error repeats the request: %v", err)
		}
	}
}

func TestHangingUpIsToldWithoutTheAddressOfTheTarget(t *testing.T) {
	address := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	i, err := NewIngest(Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	_, err = i.Send(t.Context(), Message{Method: "POST", To: "a", Suffix: "/x?token=SEC1"})
	if err == nil || !strings.Contains(err.Error(), "the connection broke") || strings.Contains(err.Error(), "SEC1") {
		t.Errorf("got %v", err)
	}
}

func TestUnixSocketAndToken(t *testing.T) {
	dir := t.TempDir()
	socket, token := filepath.Join(dir, "s"), filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open-sesame" || r.UserAgent() != "Postern/9" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, `{"pending":7,"oldest_pending":"2026-01-02T03:04:05Z","avg_delivery_ms_last_hour":null}`)
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	a := newAdmin(t, Config{Address: "unix:" + socket, TokenFile: token, UserAgent: "Postern/9"})
	got, err := a.Status(t.Context())
	if err != nil || got.Value.Pending != 7 || got.Value.AvgDeliveryMS != nil || !got.Value.OldestPending.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("got %+v, %v", got.Value, err)
	}
	if a.Address() != "unix:"+socket {
		t.Errorf("Address() = %q", a.Address())
	}
}

func TestAdminRequests(t *testing.T) {
	var got, body string
	a := newAdmin(t, Config{Address: serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r.Method+" "+r.RequestURI, string(text)
		io.WriteString(w, `{}`)
	})})
	ctx := t.Context()
	filter := LetterFilter{Endpoint: "a", Status: 503, Error: "http_503", Since: "24h", Until: "2026-01-02T03:04:05Z"}
	for _, c := range []struct {
		call       func() error
		want, body string
	}{
		{func() error {
			_, err := a.Events(ctx, EventFilter{State: "failed", Endpoint: "https://p.example", Limit: 5, Cursor: "c"})
			return err
		},
			"GET /api/v1/events?cursor=c&endpoint=https%3A%2F%2Fp.example&limit=5&state=failed", ""},
		{func() error { _, err := a.Event(ctx, "a/b", false); return err }, "GET /api/v1/events/a%2Fb", ""},
		{func() error { _, err := a.Event(ctx, "e", true); return err }, "GET /api/v1/events/e?reveal=1", ""},
		{func() error { _, err := a.RetryEvent(ctx, "e"); return err }, "POST /api/v1/events/e/retry", ""},
		{func() error { _, err := a.DeleteEvent(ctx, "e"); return err }, "DELETE /api/v1/events/e", ""},
		{func() error { _, err := a.Endpoints(ctx); return err }, "GET /api/v1/endpoints", ""},
		{func() error { _, err := a.Endpoint(ctx, "https://p.example"); return err }, "GET /api/v1/endpoints/https:%2F%2Fp.example", ""},
		{func() error { _, err := a.ActOnEndpoint(ctx, "n", "pause"); return err }, "POST /api/v1/endpoints/n/pause", ""},
		{func() error { _, err := a.DeadLetters(ctx, filter, 9, ""); return err },
			"GET /api/v1/dead-letters?endpoint=a&error=http_503&limit=9&since=24h&status=503&until=2026-01-02T03%3A04%3A05Z", ""},
		{func() error { _, err := a.Analysis(ctx, 72); return err }, "GET /api/v1/dead-letters/analysis?hours=72", ""},
		{func() error { _, err := a.Replay(ctx, Bulk{LetterFilter: filter, Rate: "20/1s"}); return err }, "POST /api/v1/dead-letters/replay",
			`{"endpoint":"a","status":503,"error":"http_503","since":"24h","until":"2026-01-02T03:04:05Z","rate":"20/1s"}`},
		{func() error { _, err := a.ReplayProgress(ctx, "rpl_1"); return err }, "GET /api/v1/dead-letters/replays/rpl_1", ""},
		{func() error { _, err := a.StopReplay(ctx, "rpl_1"); return err }, "DELETE /api/v1/dead-letters/replays/rpl_1", ""},
		{func() error { _, err := a.Purge(ctx, Bulk{DryRun: true}); return err }, "POST /api/v1/dead-letters/purge", `{"dry_run":true}`},
	} {
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
		if got != c.want || body != c.body {
			t.Errorf("got  %s %s\nwant %s %s", got, body, c.want, c.body)
		}
	}
	status, _, err := a.Probe(ctx, "/readyz")
	if err != nil || status != 200 || got != "GET /readyz" {
		t.Errorf("probe: %d, %v, %s", status, err, got)
	}
}
