package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// closing is a receiver that closes a connection which has been idle for a while, at the worst moment for its client.
type closing struct {
	mu   sync.Mutex
	seen map[string]int
}

func closingReceiver(t *testing.T, ln net.Listener, idle time.Duration) *closing {
	t.Helper()
	r := &closing{seen: map[string]int{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.serve(c, idle) })
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return r
}

func (r *closing) serve(c net.Conn, idle time.Duration) {
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		c.SetReadDeadline(time.Now().Add(idle))
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		r.mu.Lock()
		r.seen[req.Header.Get("Postern-Event-Id")]++
		r.mu.Unlock()
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}
