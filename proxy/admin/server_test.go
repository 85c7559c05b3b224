package admin_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/server"
)

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// listen serves handler on loopback and returns its address and log.
func listen(t *testing.T, handler http.Handler) (addr string, log *syncBuffer) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = new(syncBuffer)
	srv := server.New(server.Config{Name: "admin", Handler: handler, Logger: slog.New(slog.NewTextHandler(log, nil)), Limits: server.Admin})
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	t.Cleanup(func() {
		srv.Close()
		<-ended
	})
	return ln.Addr().String(), log
}

// talk sends raw bytes and returns all that comes back.
func talk(t *testing.T, addr, raw string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestServer(t *testing.T) {
	addr, log := listen(t, newRig(t).handler)
	for _, tc := range []struct{ raw, status string }{
		{"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200"},
		{"GET /api/v1/endpoints/https://other.example:8443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200"},
		{"GET /api/v1/endpoints/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "403"},
		{"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"},
		{"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "405"},
		{"GET http://evil.example/api/v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "403"},
		{"GET /?token=" + secretQuery + "\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "431"},
	} {
		first, _, _ := strings.Cut(tc.raw, "\r\n")
		if got := talk(t, addr, tc.raw); !strings.HasPrefix(got, "HTTP/1.1 "+tc.status) {
			t.Errorf("%.80q: %.200s", first, got)
		}
	}
	if got := log.String(); got != "" {
		t.Errorf("lines about single requests: %s", got)
	}
}

// TestAFaultIsLoggedWithoutWhatItSays: a panic's value may hold anything.
func TestAFaultIsLoggedWithoutWhatItSays(t *testing.T) {
	addr, log := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(secretBody) }))
	if got := talk(t, addr, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); got != "" {
		t.Errorf("answer %q", got)
	}
	if got := log.String(); !strings.Contains(got, "server_test.go") || strings.Contains(got, secretBody) {
		t.Errorf("log: %s", got)
	}
}

// deadlines is a ResponseWriter that keeps the last deadlines that were asked for.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write *time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = &t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = &t; return nil }

// TestWhatTouchesEveryDeadLetterMayTakeItsTime: and nothing else may.
func TestWhatTouchesEveryDeadLetterMayTakeItsTime(t *testing.T) {
	for path, lifted := range map[string]bool{
		"GET /api/v1/dead-letters/analysis": true, "POST /api/v1/dead-letters/replay": true, "POST /api/v1/dead-letters/purge": true,
		"GET /api/v1/status": false, "GET /api/v1/dead-letters": false,
	} {
		r := newRig(t)
		method, target, _ := strings.Cut(path, " ")
		req := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader("{}"))
		req.Host = "localhost"
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r.handler.ServeHTTP(w, req)
		if got := w.read != nil && w.write != nil && w.read.IsZero() && w.write.IsZero(); got != lifted || w.Code != 200 {
			t.Errorf("%s: status %d, limits lifted: %v, want %v", path, w.Code, got, lifted)
		}
	}
}
