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
	"postern/proxy/server"
)

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
	srv := server.New(server.Config{Name: "ingest", Handler: d.handler, Logger: slog.New(slog.NewTextHandler(d.log, nil)), Limits: server.Ingest, WatchOnDemand: true})
	ended := make(chan error)
	go func() { ended <- srv.Serve(listener) }()
	conn := d.dial()
	mustWrite(t, conn, wire(d.addr, "GET /to/x HTTP/1.1\nHost: HOST"))
	if got, _ := io.ReadAll(conn); len(got) != 0 {
		t.Errorf("%s", got)
	}
	_ = conn.Close()
	d.accepted("GET /https://x.example/ HTTP/1.1\nHost: HOST")
	_ = srv.Close()
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
