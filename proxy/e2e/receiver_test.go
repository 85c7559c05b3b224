package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// request is one request as a receiver got it, byte for byte.
type request struct {
	Raw    []byte // everything up to the end of the headers
	Line   string // the request line
	Header http.Header
	Host   string
	Body   []byte
	At     time.Time // when it had been read whole
	Conn   int       // the connection it came on, from 1
}

func (r request) eventID() string { return r.Header.Get("Postern-Event-Id") }

// reply is what a receiver answers. The zero value is 200 with an empty body.
type reply struct {
	Status int
	Header map[string]string
	Body   string
	After  time.Duration // wait before answering
	Hang   bool          // never answer
	Close  bool          // close the connection without an answer
	Raw    string        // written as it is, then the connection is closed
	Hold   bool          // with Raw: the connection stays open, and nothing more comes
}

// receiver is the partner's side: a raw TCP server.
type receiver struct {
	t      testing.TB
	ln     net.Listener
	mu     sync.Mutex // guards what follows
	got    []request
	answer func(n int, r request) reply
	conns  map[net.Conn]bool
	cut    int // of the first connection: this many bytes of a body are read, then it is closed
	opened int
	most   int
	change chan struct{}
	closed chan struct{}
	wg     sync.WaitGroup
}

// newReceiver listens on a free port of 127.0.0.1. answer is asked for each request; n counts from 1. nil: always 200.
func newReceiver(t testing.TB, answer func(n int, r request) reply) *receiver {
	t.Helper()
	return newReceiverOn(t, "127.0.0.1:0", nil, answer)
}

func newReceiverOn(t testing.TB, addr string, conf *tls.Config, answer func(n int, r request) reply) *receiver {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if conf != nil {
		ln = tls.NewListener(ln, conf)
	}
	r := &receiver{t: t, ln: ln, answer: answer, conns: map[net.Conn]bool{}, change: make(chan struct{}), closed: make(chan struct{})}
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *receiver) addr() string { return r.ln.Addr().String() }
func (r *receiver) url(path string) string {
	return "http://" + r.addr() + path
}

func (r *receiver) close() {
	r.mu.Lock()
	select {
	case <-r.closed:
		r.mu.Unlock()
		return
	default:
	}
	close(r.closed)
	r.ln.Close()
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *receiver) accept() {
	for {
		c, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.opened++
		r.conns[c] = true
		r.most = max(r.most, len(r.conns))
		n := r.opened
		r.mu.Unlock()
		r.wg.Go(func() {
			defer func() {
				c.Close()
				r.mu.Lock()
				delete(r.conns, c)
				r.mu.Unlock()
			}()
			r.serve(c, n)
		})
	}
}

func (r *receiver) serve(c net.Conn, conn int) {
	var raw bytes.Buffer
	br := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		// What was read ahead beyond the last request stays in raw.
		raw.Reset()
		if n := br.Buffered(); n > 0 {
			ahead, _ := br.Peek(n)
			raw.Write(ahead)
		}
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		r.mu.Lock()
		cut := r.cut
		r.mu.Unlock()
		if conn == 1 && cut > 0 {
			io.CopyN(io.Discard, req.Body, int64(cut))
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		head, _, _ := bytes.Cut(raw.Bytes(), []byte("\r\n\r\n"))
		line, _, _ := strings.Cut(string(head), "\r\n")
		got := request{Raw: bytes.Clone(head), Line: line, Header: req.Header, Host: req.Host, Body: body, At: time.Now(), Conn: conn}
		if !r.respond(c, req, got) {
			return
		}
	}
}

// respond answers, and tells whether the connection stays open.
func (r *receiver) respond(c net.Conn, req *http.Request, got request) bool {
	r.mu.Lock()
	r.got = append(r.got, got)
	n, answer := len(r.got), r.answer
	close(r.change)
	r.change = make(chan struct{})
	r.mu.Unlock()
	var a reply
	if answer != nil {
		a = answer(n, got)
	}
	if a.After > 0 || a.Hang {
		wait := time.NewTimer(a.After)
		if a.Hang {
			wait.Reset(time.Hour)
		}
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.closed:
			return false
		}
	}
	if a.Close {
		return false
	}
	if a.Raw != "" {
		io.WriteString(c, a.Raw)
		if a.Hold {
			<-r.closed
		}
		return false
	}
	if a.Status == 0 {
		a.Status = 200
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	for k, v := range a.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", k, v)
	}
	if a.Status != 204 && a.Status != 304 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(a.Body))
	}
	b.WriteString("\r\n")
	if req.Method != "HEAD" {
		b.WriteString(a.Body)
	}
	_, err := io.WriteString(c, b.String())
	return err == nil && !req.Close
}

// script answers the given replies in order, the last one for ever.
func script(replies ...reply) func(int, request) reply {
	return func(n int, _ request) reply { return replies[min(n, len(replies))-1] }
}

// status is a reply with nothing but a status.
func status(code int) reply { return reply{Status: code} }

func (r *receiver) setAnswer(answer func(int, request) reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// requests is what came so far.
func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// mostOpen is the highest number of connections that were open at once.
func (r *receiver) mostOpen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// wait blocks until n requests came, and fails the test after the limit.
func (r *receiver) wait(n int, limit time.Duration) []request {
	r.t.Helper()
	deadline := time.After(limit)
	for {
		r.mu.Lock()
		count, change := len(r.got), r.change
		r.mu.Unlock()
		if count >= n {
			return r.requests()
		}
		select {
		case <-change:
		case <-deadline:
			r.t.Fatalf("receiver got %d requests in %v, want %d", count, limit, n)
		}
	}
}

// byEvent counts requests by event ID.
func (r *receiver) byEvent() map[string]int {
	counts := map[string]int{}
	for _, q := range r.requests() {
		counts[q.eventID()]++
	}
	return counts
}
