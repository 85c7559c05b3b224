package delivery_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/delivery"
	"postern/proxy/egress"
	"postern/proxy/target"
	"postern/spool"
)

// TestMain fails the run if a connection's goroutine outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	for until := time.Now().Add(time.Minute); code == 0; runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(stacks, []byte("persistConn")) && !bytes.Contains(stacks, []byte("dialConn")) && !bytes.Contains(stacks, []byte("http2ClientConn")) {
			break
		}
		if time.Now().After(until) {
			fmt.Fprintf(os.Stderr, "goroutines are left over:\n%s\n", stacks)
			code = 1
		}
	}
	os.Exit(code)
}

// recv is a receiver that keeps the raw bytes of what it is sent.
type recv struct {
	net.Listener
	// reply answers the n-th request (1, 2, …) that came on its connection and tells whether the connection stays open.
	reply func(c net.Conn, n int) (keep bool)

	wg       sync.WaitGroup
	mu       sync.Mutex // guards what follows
	requests []string
	open     map[net.Conn]bool
	most     int // connections that were open at once
	bound    int // how many may be; 0: any number
}

func say(text string) func(net.Conn, int) bool {
	return func(c net.Conn, _ int) bool { _, err := io.WriteString(c, text); return err == nil }
}

const ok204 = "HTTP/1.1 204 No Content\r\n\r\n"

// sayBody is an answer with that status line's end and body.
func sayBody(status, body string) func(net.Conn, int) bool {
	return say("HTTP/1.1 " + status + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

func newRecv(t testing.TB, reply func(net.Conn, int) bool) *recv {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recv{Listener: l, reply: reply, open: map[net.Conn]bool{}}
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.track(c, true)
			r.wg.Go(func() { r.serve(c) })
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *recv) stop() {
	r.Listener.Close()
	r.mu.Lock()
	for c := range r.open {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *recv) track(c net.Conn, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if open {
		r.open[c] = true
		r.most = max(r.most, r.settled())
		return
	}
	delete(r.open, c)
	c.Close()
}

// allow says how many connections may be open at once.
func (r *recv) allow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound = n
}

// settled counts the open connections. Where they are too many, one may be about to be closed: net/http gives its place to
// the next one a moment before it closes it, and the goroutine that reads from it is woken later still. One that is
// really too many stays, since nothing is answered meanwhile.
func (r *recv) settled() int {
	n := len(r.open)
	for until := time.Now().Add(2 * time.Second); r.bound > 0 && n > r.bound && r.most <= r.bound && time.Now().Before(until); runtime.Gosched() {
		n = 0
		for c := range r.open {
			if !closedByPeer(c) {
				n++
			}
		}
	}
	return n
}

func (r *recv) serve(c net.Conn) {
	defer r.track(c, false)
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		raw, err := readRequest(in)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.requests = append(r.requests, raw)
		r.mu.Unlock()
		if !r.reply(c, n) {
			return
		}
	}
}

// readRequest takes one request off the wire as it is; its body is as long as Content-Length says.
func readRequest(in *bufio.Reader) (string, error) {
	var raw strings.Builder
	length := 0
	for {
		line, err := in.ReadString('\n')
		raw.WriteString(line)
		if err != nil {
			return "", err
		}
		if line == "\r\n" {
			break
		}
		if name, value, _ := strings.Cut(line, ":"); textproto.CanonicalMIMEHeaderKey(name) == "Content-Length" {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return "", err
			}
		}
	}
	_, err := io.CopyN(&raw, in, int64(length))
	return raw.String(), err
}

func (r *recv) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

func (r *recv) url(path string) string { return "http://" + r.Addr().String() + path }

// last is the one request that came, or the last of several, cut into lines; the body is the last element.
func (r *recv) last(t *testing.T) []string {
	t.Helper()
	all := r.seen()
	if len(all) == 0 {
		t.Fatal("no request came")
	}
	return strings.Split(all[len(all)-1], "\r\n")
}

func newTransport(t testing.TB, concurrency int) *egress.Client {
	t.Helper()
	c, err := egress.New(egress.Options{Policy: egress.Policy{AllowPrivate: true}, Concurrency: concurrency})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newEndpoint(t testing.TB) *delivery.Endpoint {
	t.Helper()
	return &delivery.Endpoint{Name: "partner-a", Timeout: time.Minute, RoundTripper: newTransport(t, 4)}
}

func newSender() delivery.Sender {
	return delivery.New(delivery.Config{Log: slog.New(slog.DiscardHandler)})
}

func newEvent(method, target, body string, headers ...spool.Header) *spool.Event {
	return &spool.Event{ID: "evt_1", Endpoint: "partner-a", Method: method, Target: target, Body: []byte(body), Headers: headers}
}

func send(t testing.TB, e *delivery.Endpoint, event *spool.Event) delivery.Result {
	return newSender().Send(t.Context(), &delivery.Job{Event: event, Number: 1, Endpoint: e})
}

func mustParse(t *testing.T, raw string) target.Target {
	t.Helper()
	parsed, err := target.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// piped is a transport whose connections are pipes to serve, so that it works within a synctest bubble.
func piped(serve func(net.Conn)) *http.Transport {
	return &http.Transport{DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			serve(there)
		}()
		return here, nil
	}}
}

// header lists the lines of a request that are not in the usual set.
func has(lines []string, want string) bool {
	for _, line := range lines {
		if line == want {
			return true
		}
	}
	return false
}
