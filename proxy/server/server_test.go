package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener within a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// rig is a server in a bubble, with a clock of its own.
type rig struct {
	*Server
	t       *testing.T
	pipes   pipes
	log     lockedLog
	refused atomic.Int64
	clients []*client
}

type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// echo answers with the size of the body; /slow takes ten minutes for it.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		select {
		case <-time.After(10 * time.Minute):
		case <-r.Context().Done():
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusRequestTimeout)
		return
	}
	fmt.Fprint(w, len(body))
}

func inBubble(t *testing.T, change func(*Config), do func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, pipes: pipes{make(chan net.Conn), make(chan struct{})}}
		cfg := Config{
			Name: "admin", Handler: http.HandlerFunc(echo), Logger: slog.New(slog.NewTextHandler(&r.log, nil)), Limits: Ingest,
			Always: []string{"/healthz"}, Refused: func() { r.refused.Add(1) },
		}
		if change != nil {
			change(&cfg)
		}
		r.Server = New(cfg)
		ended := make(chan error, 1)
		go func() { ended <- r.Serve(r.pipes) }()
		do(r)
		r.Close()
		for _, c := range r.clients {
			c.Close()
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// dial opens a connection and says something, if anything; what comes back, and that it ends, can be read from it.
func (r *rig) dial(text string) *client {
	c := r.talkTo(net.Pipe())
	if text != "" {
		c.say(r.t, text)
	}
	synctest.Wait()
	return c
}

// talkTo hands the server one end of a pipe, and gives a client at the other.
func (r *rig) talkTo(here, there net.Conn) *client {
	r.pipes.conns <- there
	c := &client{Conn: here, in: bufio.NewReader(here)}
	r.clients = append(r.clients, c)
	return c
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func (c *client) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Errorf("cannot say it: %v", err)
	}
}

// hears reads one answer; its status is zero where the connection ended instead.
func (c *client) hears() (status int, header http.Header, body string) {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, ""
	}
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text)
}

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// lives says begin at once and more once a second, and tells for how long the server goes along.
func (r *rig) lives(begin, more string) time.Duration {
	start, ended := time.Now(), make(chan struct{})
	c := r.dial("")
	go func() {
		defer close(ended)
		io.Copy(io.Discard, c)
	}()
	c.say(r.t, begin)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return time.Since(start)
		case <-tick.C:
			if more != "" {
				io.WriteString(c, more) // fails once the server is gone
			}
		}
	}
}

// TestSlowClients: each way of taking time has an end.
func TestSlowClients(t *testing.T) {
	const post = "POST / HTTP/1.1\r\nHost: localhost\r\n"
	for listener, limits := range map[string]Limits{"ingest": Ingest, "admin": Admin} {
		for name, c := range map[string]struct {
			begin, more string
			ends        time.Duration
		}{
			"says nothing":             {"", "", limits.Header},
			"a request line":           {"POST /", "x", limits.Header},
			"a header that trickles":   {post + "X: ", "x", limits.Header},
			"a body that trickles":     {post + "Content-Length: 100000\r\n\r\n", "x", limits.Read},
			"chunks that trickle":      {post + "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", limits.Read},
			"an answered one":          {get, "", limits.Idle},
			"a second header":          {get + "GET", "x", limits.Header},
			"a body that never begins": {post + "Content-Length: 1\r\n\r\n", "", limits.Read},
		} {
			t.Run(listener+"/"+name, func(t *testing.T) {
				inBubble(t, func(cfg *Config) { cfg.Limits, cfg.WatchOnDemand = limits, listener == "ingest" }, func(r *rig) {
					if got := r.lives(c.begin, c.more); got < c.ends || got > c.ends+2*time.Second {
						t.Errorf("the connection ended after %v, want %v", got, c.ends)
					}
				})
			})
		}
	}
}

// TestAnHonestClientMayBeSlow: 1 MiB over five seconds.
func TestAnHonestClientMayBeSlow(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		c := r.dial("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n")
		for range 16 {
			c.say(t, strings.Repeat("x", 64<<10))
			time.Sleep(5 * time.Second / 16)
		}
		if status, _, body := c.hears(); status != 200 || body != "1048576" {
			t.Errorf("%d %s", status, body)
		}
	})
}

func TestLargeHeaders(t *testing.T) {
	for listener, limits := range map[string]Limits{"ingest": Ingest, "admin": Admin} {
		for _, header := range []string{"X: " + strings.Repeat("x", limits.HeaderBytes+8<<10), strings.Repeat("X: x\r\n", limits.HeaderBytes/4)} {
			inBubble(t, func(cfg *Config) { cfg.Limits, cfg.WatchOnDemand = limits, listener == "ingest" }, func(r *rig) {
				c := r.dial("")
				go io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header) // never ends
				if status, _, _ := c.hears(); status != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("%s: %d", listener, status)
				}
			})
		}
	}
}

// few is a bound that a test can reach.
const few = 3

func bounded(cfg *Config) { cfg.MaxConnections = few }

// fill takes all connections with requests that are under way.
func (r *rig) fill() []*client {
	all := make([]*client, few)
	for i := range all {
		all[i] = r.dial("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	return all
}

// TestBeyondTheBound: a client learns why, a probe is answered, and both are gone then.
func TestBeyondTheBound(t *testing.T) {
	inBubble(t, bounded, func(r *rig) {
		busy := r.fill()
		for range 5 {
			c := r.dial(get)
			status, header, body := c.hears()
			if status != 503 || header.Get("Retry-After") != "1" ||
				!strings.Contains(body, "admin.max_connections") || header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %v %s", status, header, body)
			}
			if _, err := c.in.ReadByte(); err != io.EOF {
				t.Errorf("after the refusal: %v", err)
			}
			probe := r.dial("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if status, _, _ := probe.hears(); status != 200 {
				t.Errorf("the probe: %d", status)
			}
			if _, err := probe.in.ReadByte(); err != io.EOF {
				t.Errorf("after the probe: %v", err)
			}
		}
		if r.refused.Load() != 5 || strings.Count(r.log.String(), "\n") != 1 {
			t.Errorf("%d counted; log: %s", r.refused.Load(), r.log.String())
		}
		busy[0].Close()
		synctest.Wait()
		if status, _, _ := r.dial(get).hears(); status != 200 {
			t.Errorf("with room again: %d", status)
		}
	})
}

// TestIdleConnectionsGiveWay: the longest idle one, and none that has just spoken or just come.
func TestIdleConnectionsGiveWay(t *testing.T) {
	inBubble(t, bounded, func(r *rig) {
		var all []*client
		for range few {
			all = append(all, r.dial(get))
			all[len(all)-1].hears()
			time.Sleep(100 * time.Millisecond)
		}
		if status, _, _ := r.dial(get).hears(); status != 503 {
			t.Errorf("before any of them is idle for long: %d", status)
		}
		all[0].say(t, get) // so that the second one is idle for longest
		all[0].hears()
		time.Sleep(2 * time.Second)
		if status, _, _ := r.dial(get).hears(); status != 200 {
			t.Errorf("in the place of an idle one: %d", status)
		}
		if _, err := all[1].in.ReadByte(); err != io.EOF {
			t.Errorf("the longest idle one: %v", err)
		}
		for _, c := range []*client{all[0], all[2]} {
			c.say(t, get)
			if status, _, _ := c.hears(); status != 200 {
				t.Errorf("another one: %d", status)
			}
		}
	})
}

// TestMuteConnectionsKeepNoProbeOut: however many are opened, a probe is answered at once, and they do not pile up.
func TestMuteConnectionsKeepNoProbeOut(t *testing.T) {
	inBubble(t, bounded, func(r *rig) {
		r.fill()
		var mute []*client
		for range 5 * beyondConns {
			mute = append(mute, r.dial("G"))
			time.Sleep(time.Millisecond) // so that there is an oldest
			start := time.Now()
			if status, _, _ := r.dial("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").hears(); status != 200 || time.Since(start) > 0 {
				t.Errorf("the probe: %d after %v", status, time.Since(start))
			}
		}
		for _, c := range mute[:4*beyondConns-1] {
			if _, err := c.in.ReadByte(); err != io.EOF {
				t.Errorf("an old one: %v", err)
			}
		}
		start := time.Now()
		mute[len(mute)-1].hears()
		if took := time.Since(start); took > beyondTime {
			t.Errorf("the last one was kept for %v", took)
		}
	})
}
