package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// step is what happens to a connection after a pause.
type step struct {
	pause    time.Duration
	deadline time.Duration // from then; zero: none; below: in the past
	bytes    int           // instead of a deadline: so many come, or are taken
}

// history plays steps on one end of a pipe while somebody reads or writes there, and tells what became of each of his
// calls, and when. After a timeout he tries again with the next step.
func history(wrap func(net.Conn) net.Conn, write bool, steps []step) []string {
	here, there := net.Pipe()
	c := wrap(here)
	set, do, other := c.SetReadDeadline, c.Read, there.Write
	if write {
		set, do, other = c.SetWriteDeadline, c.Write, there.Read
	}
	var told []string
	start, next, ended := time.Now(), make(chan bool, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			n, err := do(make([]byte, 5))
			told = append(told, fmt.Sprintf("%v: %d %v", time.Since(start), n, err))
			if errors.Is(err, os.ErrDeadlineExceeded) && <-next {
				continue
			}
			if err != nil {
				return
			}
		}
	}()
	for _, s := range steps {
		time.Sleep(5 * time.Microsecond)
		select {
		case next <- true:
		default: // he has not tried again yet
		}
		time.Sleep(s.pause)
		switch {
		case s.bytes > 0:
			there.SetDeadline(time.Now().Add(3 * time.Millisecond))
			other(make([]byte, s.bytes))
		case s.deadline == 0:
			set(time.Time{})
		default:
			set(time.Now().Add(s.deadline))
		}
	}
	close(next)
	time.Sleep(time.Minute)
	here.Close()
	there.Close()
	<-ended
	return told
}

// TestDeadlinesAreThoseOfTheConnection: whatever is set and whenever, each call ends when it would have without us.
func TestDeadlinesAreThoseOfTheConnection(t *testing.T) {
	// Pauses and deadlines are such that no two things happen at once.
	one := rapid.Custom(func(t *rapid.T) step {
		s := step{pause: time.Duration(rapid.IntRange(0, 4).Draw(t, "pause"))*10*time.Millisecond + 5*time.Microsecond}
		if s.bytes = rapid.IntRange(0, 12).Draw(t, "bytes"); s.bytes > 0 && s.bytes < 7 {
			return s
		}
		s.bytes = 0
		s.deadline = rapid.SampledFrom([]time.Duration{0, 0, -time.Hour, -time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 95 * time.Millisecond, 305 * time.Millisecond}).Draw(t, "deadline")
		return s
	})
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(one, 1, 30).Draw(rt, "steps")
		write := rapid.Bool().Draw(rt, "write")
		var plain, ours []string
		synctest.Test(t, func(*testing.T) {
			plain = history(func(c net.Conn) net.Conn { return c }, write, steps)
		})
		synctest.Test(t, func(*testing.T) {
			ours = history(func(c net.Conn) net.Conn { return newConn(c, newListener(nil, Config{})) }, write, steps)
		})
		if !slices.Equal(plain, ours) {
			rt.Fatalf("a plain connection: %q\nours: %q", plain, ours)
		}
	})
}

// TestAWriteGoesOnWithTheRest when a deadline that nobody wants any more goes off in its middle.
func TestAWriteGoesOnWithTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		c := newConn(here, newListener(nil, Config{}))
		c.SetDeadline(time.Now().Add(5 * time.Millisecond))
		c.SetDeadline(time.Time{})
		got := make(chan []byte)
		go func() {
			var all [6]byte
			io.ReadFull(there, all[:2])
			time.Sleep(time.Second)
			io.ReadFull(there, all[2:])
			got <- all[:]
		}()
		if n, err := c.Write([]byte("abcdef")); n != 6 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if text := <-got; string(text) != "abcdef" {
			t.Errorf("%s", text)
		}
		c.SetWriteDeadline(time.Now().Add(time.Second))
		go io.ReadFull(there, make([]byte, 4))
		if n, err := c.Write([]byte("abcdef")); n != 4 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// overTCP gives both ends of a real connection; ours is wrapped.
func overTCP(t *testing.T, cfg Config) (ours *conn, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	theirs, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := newListener(ln, cfg).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close(); theirs.Close() })
	return accepted.(*conn), theirs
}

// TestInterrupt: a deadline in the past ends a read that is under way or about to be, each time, and harms none after it.
func TestInterrupt(t *testing.T) {
	c, peer := overTCP(t, Config{})
	c.SetReadDeadline(time.Now().Add(time.Hour))
	var buf [1]byte
	for i := range 500 {
		ended := make(chan error)
		go func() {
			_, err := c.Read(buf[:])
			ended <- err
		}()
		c.SetReadDeadline(time.Unix(1, 0))
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("turn %d: %v", i, err)
		}
		c.SetReadDeadline([]time.Time{{}, time.Now().Add(time.Hour)}[i%2])
		if _, err := peer.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf[:]); err != nil || buf[0] != byte(i) {
			t.Fatalf("turn %d: %v, %d", i, err, buf[0])
		}
	}
}

// TestDeadlinesThatGoOffAtAnyTime loses no byte and lets no timeout out while others set deadlines that nobody waits for.
func TestDeadlinesThatGoOffAtAnyTime(t *testing.T) {
	c, peer := overTCP(t, Config{})
	const size = 8 << 20
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				// The first goes off soon, the second is the one that is meant: the timer stays at the first.
				c.reading.mu.Lock()
				c.reading.armed = time.Now().Add(50 * time.Microsecond)
				c.Conn.SetReadDeadline(c.reading.armed)
				c.reading.mu.Unlock()
				c.SetDeadline(time.Now().Add(time.Hour))
				c.SetWriteDeadline(time.Time{})
			}
		})
	}
	go func() {
		io.CopyN(peer, zeros{}, size)
		peer.(*net.TCPConn).CloseWrite()
	}()
	n, err := io.Copy(io.Discard, c)
	done.Store(true)
	wg.Wait()
	if n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// counting counts what reaches the connection.
type counting struct {
	net.Conn
	deadlines, single *atomic.Int64 // deadlines set; reads of one byte
}

func (c counting) SetReadDeadline(t time.Time) error {
	c.deadlines.Add(1)
	return c.Conn.SetReadDeadline(t)
}

func (c counting) SetWriteDeadline(t time.Time) error {
	c.deadlines.Add(1)
	return c.Conn.SetWriteDeadline(t)
}

func (c counting) Read(p []byte) (int, error) {
	if len(p) == 1 {
		c.single.Add(1)
	}
	return c.Conn.Read(p)
}

// TestFewDeadlinesReachTheConnection: that is what all of this is for.
func TestFewDeadlinesReachTheConnection(t *testing.T) {
	const requests = 100
	for onDemand, most := range map[bool]int64{true: 5, false: 4 * requests} {
		slow := func(cfg *Config) {
			cfg.WatchOnDemand = onDemand
			cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				echo(w, r)
				time.Sleep(time.Millisecond) // a handler that is quicker than net/http's look-out breaks it off
			})
		}
		inBubble(t, slow, func(r *rig) {
			here, there := net.Pipe()
			var deadlines, single atomic.Int64
			c := r.talkTo(here, counting{there, &deadlines, &single})
			for range requests {
				c.say(t, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab")
				if status, _, body := c.hears(); status != 200 || body != "2" {
					t.Fatalf("%d %s", status, body)
				}
			}
			if got := deadlines.Load(); got > most {
				t.Errorf("on demand %v: %d deadlines for %d requests", onDemand, got, requests)
			}
			if got := single.Load(); (got == 0) != onDemand {
				t.Errorf("on demand %v: %d reads of one byte", onDemand, got)
			}
		})
	}
}
