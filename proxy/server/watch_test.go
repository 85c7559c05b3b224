package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// demanding has a handler that looks out for its client where the path says so.
func demanding(cfg *Config) {
	cfg.WatchOnDemand = true
	cfg.Handler = http.HandlerFunc(watcher)
}

// watcher answers after a second; /watch with 204 as soon as the client has left, /panic by a panic while it watches. The
// header Context tells the state of the request's own context.
func watcher(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if r.Context().Err() != nil {
		w.Header().Set("Context", r.Context().Err().Error())
	}
	switch {
	case r.Method != "GET" && r.Method != "POST": // a byte of it is lost
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case r.URL.Path == "/":
		time.Sleep(time.Second)
		return
	}
	_, stop := Watch(r.Context())
	time.Sleep(time.Millisecond)
	stop()
	ctx, stop := Watch(r.Context()) // once more
	defer stop()
	if r.URL.Path == "/panic" {
		time.Sleep(time.Millisecond)
		panic(http.ErrAbortHandler)
	}
	select {
	case <-ctx.Done():
		w.WriteHeader(http.StatusNoContent)
	case <-time.After(time.Minute):
	}
}

// heard wants the answers of a client: their statuses, and when they came.
func (c *client) heard(t *testing.T, start time.Time, after time.Duration, want ...int) {
	t.Helper()
	for i, status := range want {
		got, header, _ := c.hears()
		if got != status || header["Context"] != nil {
			t.Errorf("answer %d: %d, want %d; context: %v", i, got, status, header["Context"])
		}
	}
	if took := time.Since(start); took.Truncate(time.Second) != after {
		t.Errorf("answered after %v, want %v", took, after)
	}
}

const watch = "GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n"

// TestWatchLastsAsLongAsTheClient stays, and its connection serves on.
func TestWatchLastsAsLongAsTheClient(t *testing.T) {
	inBubble(t, demanding, func(r *rig) {
		start := time.Now()
		c := r.dial(watch)
		c.heard(t, start, time.Minute, 200)
		c.say(t, get)
		c.heard(t, start, time.Minute+time.Second, 200)
		c.say(t, "POST /watch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
		c.heard(t, start, 2*time.Minute+time.Second, 200)
		c.say(t, get)
		c.heard(t, start, 2*time.Minute+2*time.Second, 200)
	})
}

// TestPipelined: a request that comes before the last one's answer is not lost, wherever its first byte was read.
func TestPipelined(t *testing.T) {
	for name, first := range map[string]string{"unwatched": get, "watched": watch} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, demanding, func(r *rig) {
				start := time.Now()
				took := map[string]time.Duration{get: time.Second, watch: time.Minute}[first]
				at := r.dial(first + get + get)
				at.heard(t, start, took+2*time.Second, 200, 200, 200)
				for _, pause := range []time.Duration{0, took / 2} {
					start = time.Now()
					later := r.dial(first)
					time.Sleep(pause)
					go later.say(t, get+get)
					later.heard(t, start, took+2*time.Second, 200, 200, 200)
				}
			})
		})
	}
}

// TestHalfClosed: a client that has said all it wants to say is answered; to one who watches it looks like leaving.
func TestHalfClosed(t *testing.T) {
	for request, status := range map[string]int{get: 200, watch: 204} {
		srv := New(Config{Name: "ingest", Handler: http.HandlerFunc(watcher), Limits: Ingest, WatchOnDemand: true})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); srv.Serve(ln) }()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request)
		c.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(got), http.StatusText(status)) {
			t.Errorf("%s %v", got, err)
		}
		c.Close()
		srv.Close()
		<-ended
	}
}

// TestClientLeaves: it is noticed at once, however early.
func TestClientLeaves(t *testing.T) {
	for name, pause := range map[string]time.Duration{"before the handler asks": 0, "while it watches": time.Second} {
		t.Run(name, func(t *testing.T) {
			var ended chan time.Duration
			change := func(cfg *Config) {
				demanding(cfg)
				ended = make(chan time.Duration, 1) // within the bubble
				cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					start := time.Now()
					watcher(w, r)
					ended <- time.Since(start)
				})
			}
			inBubble(t, change, func(r *rig) {
				c := r.dial(watch)
				time.Sleep(pause)
				c.Close()
				if took := <-ended; took != max(pause, time.Millisecond) {
					t.Errorf("noticed after %v, want %v", took, pause)
				}
			})
		})
	}
}

// TestPanicWhileWatching ends that connection, and the watch.
func TestPanicWhileWatching(t *testing.T) {
	inBubble(t, demanding, func(r *rig) {
		c := r.dial("GET /panic HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if status, _, _ := c.hears(); status != 0 {
			t.Errorf("%d", status)
		}
		start := time.Now()
		r.dial(get).heard(t, start, time.Second, 200)
	})
}

// TestWatchWithoutDemand: then net/http watches, and its context is the one to look at; beyond the bound too.
func TestWatchWithoutDemand(t *testing.T) {
	ctx := t.Context()
	if got, stop := Watch(ctx); got != ctx {
		t.Error("a context of its own")
	} else {
		stop()
	}
	for name, change := range map[string]func(*Config){
		"not on demand":    func(cfg *Config) { demanding(cfg); cfg.WatchOnDemand = false },
		"beyond the bound": func(cfg *Config) { demanding(cfg); cfg.MaxConnections, cfg.Always = 1, []string{"/watch"} },
	} {
		t.Run(name, func(t *testing.T) {
			var noticed chan error
			inBubble(t, func(cfg *Config) {
				change(cfg)
				noticed = make(chan error, 1) // within the bubble
				cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, stop := Watch(r.Context())
					defer stop()
					if r.URL.Path == "/watch" {
						<-ctx.Done()
						noticed <- r.Context().Err()
						return
					}
					time.Sleep(time.Minute)
				})
			}, func(r *rig) {
				r.dial(get)
				c := r.dial(watch)
				c.Close()
				if err := <-noticed; err != context.Canceled {
					t.Errorf("the request's own context: %v", err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestReadsOfOneByte that are no look-out: where net/http's buffer has room for one more, and where a header may have one
// byte more (its first buffer is filled before net/http counts).
func TestReadsOfOneByte(t *testing.T) {
	for name, pad := range map[string]int{"the buffer": 4095, "the limit": Ingest.HeaderBytes + 8191} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cfg *Config) { cfg.WatchOnDemand = true }, func(r *rig) {
				c := r.dial(get)
				c.hears()
				begin := "GET / HTTP/1.1\r\nHost: localhost\r\nX: "
				c.say(t, begin+strings.Repeat("x", pad-len(begin)))
				synctest.Wait()
				go io.WriteString(c, "x\r\n\r\n")
				want := map[string]int{"the buffer": 200, "the limit": 431}[name]
				if status, _, _ := c.hears(); status != want {
					t.Errorf("%d, want %d", status, want)
				}
			})
		})
	}
}

// TestAReadTakenForTheLookOut reads again, as io.Reader has it, and gets what has come.
func TestAReadTakenForTheLookOut(t *testing.T) {
	c, peer := overTCP(t, Config{WatchOnDemand: true})
	if _, err := peer.Write([]byte("ab")); err != nil {
		t.Fatal(err)
	}
	for _, want := range "ab" {
		c.SetReadDeadline(time.Time{})
		var one [1]byte
		if n, err := c.Read(one[:]); n != 0 || err != nil {
			t.Errorf("the look-out: %d, %v", n, err)
		}
		if n, err := c.Read(one[:]); n != 1 || err != nil || rune(one[0]) != want {
			t.Errorf("%d %q, %v", n, one, err)
		}
	}
}
