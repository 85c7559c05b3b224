package delivery_test

import (
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/delivery"
)

// descriptors counts the process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// sendMany makes attempts, so many at once, and returns how many ended in each class.
func sendMany(t testing.TB, e *delivery.Endpoint, url string, attempts, concurrency int) (ended map[string]int) {
	ended = make(map[string]int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			for range attempts / concurrency {
				got := send(t, e, newEvent("POST", url, "x"))
				mu.Lock()
				ended[string(got.Class)]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ended
}

// TestSocketsOfFailures: 200 events with 5 attempts each, all answered 503 with 8 KiB.
func TestSocketsOfFailures(t *testing.T) {
	r := newRecv(t, sayBody("503 Busy", strings.Repeat("x", 8<<10)))
	r.allow(4)
	e := newEndpoint(t)
	e.RoundTripper = newTransport(t, 4)
	before := descriptors(t)
	if ended := sendMany(t, e, r.url("/"), 1000, 4); ended["http_503"] != 1000 {
		t.Errorf("1000 attempts ended as %v", ended)
	}
	r.mu.Lock()
	most := r.most
	r.mu.Unlock()
	if most > 4 || len(r.seen()) != 1000 {
		t.Errorf("%d connections at once, %d requests", most, len(r.seen()))
	}
	if after := descriptors(t); after > before+2*4 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestNothingIsLeftBehind: 5,000 requests, and goroutines and descriptors are what they were.
func TestNothingIsLeftBehind(t *testing.T) {
	r := newRecv(t, sayBody("200 OK", "fine"))
	transport := newTransport(t, 8)
	e := newEndpoint(t)
	e.RoundTripper = transport
	sendMany(t, e, r.url("/"), 8, 8)
	files, routines := descriptors(t), runtime.NumGoroutine()
	if ended := sendMany(t, e, r.url("/"), 5000, 8); ended[""] != 5000 {
		t.Errorf("5000 attempts ended as %v", ended)
	}
	if now := descriptors(t); now > files+2*8 { // both ends of every connection are this process's
		t.Errorf("%d descriptors before, %d after", files, now)
	}
	transport.Close()
	settled := func() bool { return runtime.NumGoroutine() <= routines && descriptors(t) <= files }
	for until := time.Now().Add(time.Minute); !settled(); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines and %d descriptors before, %d and %d after", routines, files, runtime.NumGoroutine(), descriptors(t))
		}
	}
}

// BenchmarkSend beside BenchmarkBareClient shows what the chain costs.
func BenchmarkSend(b *testing.B) {
	r := newRecv(b, sayBody("200 OK", "fine"))
	e := newEndpoint(b)
	event := newEvent("POST", r.url("/pb?cid=1"), strings.Repeat("x", 500))
	s := newSender()
	b.ReportAllocs()
	for b.Loop() {
		if got := s.Send(b.Context(), &delivery.Job{Event: event, Number: 1, Endpoint: e}); got.Class != "" {
			b.Fatal(got)
		}
	}
}

func BenchmarkBareClient(b *testing.B) {
	r := newRecv(b, sayBody("200 OK", "fine"))
	c := &http.Client{Transport: newTransport(b, 4)}
	body := strings.Repeat("x", 500)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := c.Post(r.url("/pb?cid=1"), "text/plain", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
