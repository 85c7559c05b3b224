package ingest_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"postern/proxy/ingest"
)

func TestServerSettings(t *testing.T) {
	s := ingest.NewServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.IdleTimeout <= 0 || s.WriteTimeout <= s.ReadTimeout || s.MaxHeaderBytes <= 0 {
		t.Errorf("a time or size is missing: %+v", s)
	}
	if !s.DisableGeneralOptionsHandler || s.Protocols.HTTP2() || s.Protocols.UnencryptedHTTP2() || !s.Protocols.HTTP1() {
		t.Errorf("protocols: %v", s.Protocols)
	}
}

func TestServerLogHasNothingOfARequest(t *testing.T) {
	var out lockedLog
	s := ingest.NewServer(http.NotFoundHandler(), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s.ErrorLog.Print("http: panic serving 127.0.0.1:1: SECRET1\ngoroutine 7 [running]:\nplace.go:12")
	s.ErrorLog.Print("http: invalid Content-Length of \"SECRET2\"")
	s.ErrorLog.Print("http: URL query contains semicolon SECRET3")
	s.ErrorLog.Print("http: Accept error: too many open files; retrying in 5ms")
	text := out.String()
	if strings.Contains(text, "SECRET") {
		t.Errorf("a secret shows: %s", text)
	}
	for _, want := range []string{"place.go:12", "too many open files"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing: %s", want, text)
		}
	}
}

// panicBook stands for a fault of ours: the connection ends, the others and the secrets are safe.
type panicBook struct{ fakeBook }

func (panicBook) Named(string) (ingest.Endpoint, bool) { panic("SECRET") }

func TestPanic(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(t, listener.Addr().String(), nil)
	d.handler = ingest.New(ingest.Config{}, ingest.Parts{Book: panicBook{fakeBook{}}, Spool: d.spool})
	server := ingest.NewServer(d.handler, slog.New(slog.NewTextHandler(d.log, nil)))
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()
	conn := d.dial()
	mustWrite(t, conn, wire(d.addr, "GET /to/x HTTP/1.1\nHost: HOST"))
	if got, _ := io.ReadAll(conn); len(got) != 0 {
		t.Errorf("%s", got)
	}
	_ = conn.Close()
	d.accepted("GET /https://x.example/ HTTP/1.1\nHost: HOST")
	_ = server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if text := d.log.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "address.go") {
		t.Errorf("logged: %s", text)
	}
}

func TestNoHTTP2(t *testing.T) {
	d := open(t)
	conn := d.dial()
	defer func() { _ = conn.Close() }()
	mustWrite(t, conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	got, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(got), "HTTP/1.1 ") || len(d.spool.all()) != 0 {
		t.Errorf("%q", got)
	}
}
