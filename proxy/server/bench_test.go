package server

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// committer lets all who wait go on once a millisecond, as one who commits for many does.
type committer struct{ sync.RWMutex }

func (c *committer) run(stop chan struct{}) {
	c.Lock()
	defer c.Unlock()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.Unlock()
			c.Lock()
		case <-stop:
			return
		}
	}
}

func (c *committer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body [500]byte
	_, _ = io.ReadFull(r.Body, body[:])
	c.RLock()
	defer c.RUnlock()
	w.WriteHeader(http.StatusAccepted)
}

// BenchmarkServe has 64 clients post 500 bytes each and wait for a committer. What counts is the CPU time of server and
// clients together, and the allocations, which are the server's alone.
func BenchmarkServe(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	handler, stop := new(committer), make(chan struct{})
	var wg sync.WaitGroup
	srv := New(Config{Name: "ingest", Logger: slog.New(slog.DiscardHandler), Limits: Ingest, WatchOnDemand: true, Handler: handler})
	wg.Go(func() { handler.run(stop) })
	wg.Go(func() { srv.Serve(ln) })
	const clients = 64
	before := cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	var posting sync.WaitGroup
	for i := range clients {
		posting.Go(func() { post(b, ln.Addr().String(), (b.N+i)/clients) })
	}
	posting.Wait()
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	close(stop)
	srv.Close()
	wg.Wait()
}

// post sends n requests by one connection.
func post(b *testing.B, addr string, n int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	in := bufio.NewReader(c)
	text := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n" + strings.Repeat("x", 500)
	for range n {
		io.WriteString(c, text)
		for line := []byte(nil); string(line) != "\r\n"; {
			if line, err = in.ReadSlice('\n'); err != nil {
				b.Error(err)
				return
			}
		}
	}
}

// cpuTime is the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
