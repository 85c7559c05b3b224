package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// figures are what a process takes, at one moment.
type figures struct {
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
	Resident    int   `json:"resident_anonymous_bytes"`
	Heap        int64 `json:"heap_bytes"`
	Files       int64 `json:"spool_file_bytes"`
}

// soakReport is what a soak came to.
type soakReport struct {
	Date      string  `json:"date"`
	Seconds   float64 `json:"seconds"`
	Rate      int     `json:"events_per_second"`
	Events    int     `json:"events"`
	Delivered int     `json:"delivered"`
	Before    figures `json:"before"`
	Under     figures `json:"most_under_load"`
	After     figures `json:"after"`
}

func (r soakReport) String() string {
	line := func(f figures) string {
		return fmt.Sprintf("%d goroutines, %d descriptors, %.1f MiB resident, %.1f MiB heap, %.1f MiB of files", f.Goroutines, f.Descriptors, float64(f.Resident)/(1<<20), float64(f.Heap)/(1<<20), float64(f.Files)/(1<<20))
	}
	return fmt.Sprintf("soak of %.0f s at %d/s: %d events, %d delivered\nbefore      %s\nunder load  %s at most\nafter       %s\n", r.Seconds, r.Rate, r.Events, r.Delivered, line(r.Before), line(r.Under), line(r.After))
}

func measure(t *testing.T, p *process) (f figures) {
	t.Helper()
	resp, err := p.client.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	var heap float64
	for line := range strings.Lines(string(page)) {
		fmt.Sscanf(line, "go_goroutines %d", &f.Goroutines)
		fmt.Sscanf(line, "go_memstats_heap_inuse_bytes %g", &heap)
	}
	f.Heap = int64(heap)
	f.Resident, f.Descriptors = residentAnonymous(t, p), descriptors(t, p)
	files, err := os.ReadDir(p.data)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil {
			f.Files += info.Size()
		}
	}
	return f
}

// most keeps the highest of each.
func (f figures) most(g figures) figures {
	return figures{max(f.Goroutines, g.Goroutines), max(f.Descriptors, g.Descriptors), max(f.Resident, g.Resident), max(f.Heap, g.Heap), max(f.Files, g.Files)}
}

// within tells whether a long run has left no more behind than a short one: what grows without end shows in an hour.
func (f figures) within(before figures) bool {
	return f.Goroutines <= before.Goroutines+10 && f.Descriptors <= before.Descriptors+5 &&
		f.Resident <= before.Resident*3/2+(16<<20) && f.Heap <= before.Heap*3/2+(8<<20) && f.Files <= before.Files*3/2+(4<<20)
}

// soaked is the traffic of a soak: events to a partner of which one in ten attempts fails.
type soaked struct {
	p      *process
	client *http.Client
	sent   atomic.Int64
}

func (s *soaked) post(addr string, n int64) error {
	body := bytes.Repeat([]byte("x"), int(n*7919%3000))
	resp, err := s.client.Post(fmt.Sprintf("http://%s/http://%s/pb/%d", s.p.ingest, addr, n%3), "text/plain", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 202 {
		return fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	s.sent.Add(1)
	return nil
}

// run posts at a rate for a while; a client that is behind does not catch up.
func (s *soaked) run(t *testing.T, addr string, rate int, length time.Duration) {
	t.Helper()
	const workers = 8
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			tick := time.NewTicker(time.Second * workers / time.Duration(rate))
			defer tick.Stop()
			for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
				if err := s.post(addr, s.sent.Load()); err != nil {
					t.Errorf("event %d: %v", s.sent.Load(), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// quiet waits until all is delivered and what the load needed has been given back.
func (s *soaked) quiet(t *testing.T, c *counter, ok func(figures) bool) (f figures) {
	t.Helper()
	if err := poll(60*time.Second, "everything to be delivered", func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return int64(len(c.seen)) == s.sent.Load(), nil
	}); err != nil {
		t.Fatal(err)
	}
	s.client.CloseIdleConnections()
	s.p.client.CloseIdleConnections()
	last := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if f = measure(t, s.p); ok(f) || time.Now().After(last) {
			break
		}
	}
	return f
}

// TestSoak runs at a moderate rate for a long time and ends where it began: goroutines, descriptors, memory, files.
func TestSoak(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	c.flaky.Store(true)
	p := loaded(t, "spool: { max_bytes: 256MiB, history_max_bytes: 8MiB, delivered_retention: 20s, dedupe_window: 20s }\ntargets: { allow_private: true }\n"+
		"defaults: { retry: { max_attempts: 20, base_delay: 50ms, max_delay: 200ms }, breaker: { failure_threshold: 1000, slow_failure_threshold: 1000 } }\n")
	s := &soaked{p: p, client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	report := soakReport{Date: time.Now().UTC().Format(time.DateOnly), Rate: *rate, Seconds: soak.Seconds()}
	// What it takes after a short run is what it is held to after a long one.
	s.run(t, c.addr, *rate, min(max(*soak/10, 3*time.Second), time.Minute))
	settled := time.Now().Add(3 * time.Second)
	report.Before = s.quiet(t, c, func(figures) bool { return time.Now().After(settled) })
	watched := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-watched:
				return
			case <-tick.C:
				report.Under = report.Under.most(measure(t, p))
			}
		}
	})
	s.run(t, c.addr, *rate, *soak)
	close(watched)
	watching.Wait()
	report.After = s.quiet(t, c, func(f figures) bool { return f.within(report.Before) })
	report.Events = int(s.sent.Load())
	c.wait(t, report.Events, time.Minute)
	report.Delivered = report.Events
	fmt.Print(report)
	if !report.After.within(report.Before) {
		t.Error("it does not end where it began")
	}
	if *result != "" {
		text, _ := json.MarshalIndent(report, "", "  ")
		if err := os.WriteFile(*result, append(text, '\n'), 0o644); err != nil {
			t.Error(err)
		}
	}
}
