package ingest_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBodiesAreBytes(t *testing.T) {
	d := open(t)
	large := strings.Repeat("0123456789abcdef", maxBody/16)
	for _, body := range []string{
		"",
		"{ \"a\" :\t\"\\u0026\", \"n\": 9007199254740993, \"a\":2 }\r\n",
		"\xff\xfe\x00",
		"a=1&url=http://evil&b=%zz",
		large,
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
			head := method + " /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Type: application/x-www-form-urlencoded\n"
			e := d.accepted(head + fmt.Sprintf("Content-Length: %d\n\n", len(body)) + body)
			if string(e.Body) != body || values(e, "Content-Length") != nil {
				t.Errorf("%s: %d bytes became %d; headers %v", method, len(body), len(e.Body), e.Headers)
			}
			if e.Target != "https://x.example/" {
				t.Errorf("the body steered: %s", e.Target)
			}
			half := len(body) / 2
			chunks := ""
			for _, part := range []string{body[:half], body[half:]} {
				if part != "" {
					chunks += fmt.Sprintf("%x;ext=1\r\n%s\r\n", len(part), part)
				}
			}
			e = d.accepted(head + "Transfer-Encoding: chunked\nTrailer: X-T\n\n" + chunks + "0\r\nX-T: 1\r\nX-U: 2\r\n\r\n")
			if string(e.Body) != body || len(e.Headers) != 2 { // Content-Type and User-Agent
				t.Errorf("%s chunked: %d bytes became %d; headers %v", method, len(body), len(e.Body), e.Headers)
			}
		}
	}
}

func TestExpectContinue(t *testing.T) {
	d := open(t)
	conn := d.dial()
	defer func() { _ = conn.Close() }()
	mustWrite(t, conn, wire(d.addr, "POST /https://x.example/ HTTP/1.1\nHost: HOST\nExpect: 100-continue\nContent-Length: 2"))
	first := make([]byte, len("HTTP/1.1 100"))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 100" {
		t.Fatalf("%q, %v", first, err)
	}
	mustWrite(t, conn, "ab")
	rest := make([]byte, len(" Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, rest); err != nil {
		t.Fatal(err)
	}
	if got := readReply(t, conn, "POST"); got.status != 202 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if e := d.spool.all()[0]; string(e.Body) != "ab" || values(e, "Expect") != nil {
		t.Errorf("%q %v", e.Body, e.Headers)
	}
}

// A client that goes away mid-body leaves nothing behind. Its half-closed connection still gets the reply.
func TestClientLeavesMidBody(t *testing.T) {
	d := open(t)
	for _, request := range []string{
		"POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 10\n\nabc",
		"POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 90000\n\n" + strings.Repeat("x", 80_000),
		"POST /https://x.example/ HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked\n\n3\r\nabc\r\n",
	} {
		conn := d.dial()
		mustWrite(t, conn, wire(d.addr, request))
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got := readReply(t, conn, "POST")
		_ = conn.Close()
		if got.status != 400 || !strings.Contains(got.detail(t), "ended before") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if events := d.spool.all(); len(events) != 0 {
		t.Errorf("spooled %d", len(events))
	}
}

// A client that sends its request whole and hangs up has handed it over.
func TestClientLeavesAfterTheBody(t *testing.T) {
	d := open(t)
	conn := d.dial()
	defer func() { _ = conn.Close() }()
	mustWrite(t, conn, wire(d.addr, "POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 3\n\nabc"))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := readReply(t, conn, "POST"); got.status != 202 || len(d.spool.all()) != 1 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestBodyThatComesTooSlowly(t *testing.T) {
	d := newDoor(t, "127.0.0.1:18089", nil)
	r := httptest.NewRequest("POST", "/https://x.example/", iotest.ErrReader(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}))
	r.Host, r.ContentLength = "localhost", 5
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestTimeout || len(d.spool.all()) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Requests after one another on one connection, sent before the first is answered.
func TestPipelining(t *testing.T) {
	d := open(t)
	conn := d.dial()
	defer func() { _ = conn.Close() }()
	one := wire(d.addr, "POST /https://x.example/1 HTTP/1.1\nHost: HOST\nContent-Length: 3\n\nabc")
	two := wire(d.addr, "POST /nowhere HTTP/1.1\nHost: HOST\nContent-Length: 3\n\nabc")
	three := wire(d.addr, "POST /https://x.example/3 HTTP/1.1\nHost: HOST\nConnection: close\nContent-Length: 3\n\nabc")
	mustWrite(t, conn, one+two+three)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(all), "HTTP/1.1 202"); got != 2 || strings.Count(string(all), "HTTP/1.1 400") != 1 {
		t.Errorf("%s", all)
	}
	if events := d.spool.all(); len(events) != 2 || events[0].Target != "https://x.example/1" || events[1].Target != "https://x.example/3" {
		t.Errorf("%d events", len(events))
	}
}

func mustWrite(t *testing.T, to io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}
