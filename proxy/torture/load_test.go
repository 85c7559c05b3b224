package torture

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/proxy/stage"
	"postern/sync/pgtest/intime"
)

// counter is a receiver that counts requests by event ID, and can be told to be down.
type counter struct {
	server *http.Server
	addr   string
	down   atomic.Bool
	flaky  atomic.Bool // one in ten attempts fails

	mu   sync.Mutex // guards what follows
	seen map[string]int
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	addr, err := stage.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{addr: addr, seen: map[string]int{}}
	c.server = &http.Server{Addr: addr, Handler: c, IdleTimeout: time.Second} // so that what is kept open ends with the load
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.server.ListenAndServe()
	}()
	t.Cleanup(func() { c.server.Close(); <-ended })
	return c
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if c.down.Load() && strings.HasPrefix(r.URL.Path, "/down") {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if c.flaky.Load() && rand.IntN(10) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[r.Header.Get("Postern-Event-Id")]++
}

// wait waits until so many events came, and fails the test if one came twice.
func (c *counter) wait(t *testing.T, n int, limit time.Duration) {
	t.Helper()
	count := func() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.seen) }
	if err := poll(limit, fmt.Sprintf("%d events to come", n), func() (bool, error) { return count() >= n, nil }); err != nil {
		t.Fatalf("%v: %d came", err, count())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, times := range c.seen {
		if times != 1 {
			t.Errorf("event %s came %d times", id, times)
		}
	}
	if len(c.seen) != n {
		t.Errorf("%d events came, want %d", len(c.seen), n)
	}
}

// loaded starts a Postern with this configuration, its listeners apart.
func loaded(t *testing.T, config string) *process {
	t.Helper()
	dir := t.TempDir()
	p, err := newProcess(dir, dir+"/data")
	if err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("listen: %s\nadmin: { listen: %s }\nlog: { level: warn }\n", p.ingest, p.admin)
	if err := os.WriteFile(p.config(), []byte(head+config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		log, _ := os.ReadFile(p.log.Name())
		for _, word := range badWords {
			if bytes.Contains(log, []byte(word)) {
				t.Errorf("the log has %q in it", word)
			}
		}
		p.log.Close()
		p.said.Close()
	})
	return p
}

// burst posts n events over so many connections at once and returns how many were accepted. What was not accepted must
// be a 503 that says when to come again.
func burst(t *testing.T, p *process, n, conns int, path func(i int) string, body []byte) (accepted int) {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns}}
	defer client.CloseIdleConnections()
	var taken, next atomic.Int64
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				resp, err := client.Post("http://"+p.ingest+path(i), "application/octet-stream", bytes.NewReader(body))
				if err != nil {
					t.Errorf("event %d: %v", i, err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch {
				case resp.StatusCode == 202:
					taken.Add(1)
				case resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "":
					t.Errorf("event %d: %d %s", i, resp.StatusCode, text)
					return
				}
			}
		})
	}
	wg.Wait()
	return int(taken.Load())
}

// size is the lean form's, or the full one's with -heavy.
func size(lean, full int) int {
	if *heavy {
		return full
	}
	return lean
}

const roomy = "spool: { max_bytes: 8GiB, max_endpoint_share: 1 }\ntargets: { allow_private: true }\n"

// A burst from many connections at once: each is answered, what was accepted comes once, memory stays bounded.
func TestBurst(t *testing.T) {
	parallelWhereLean(t)
	events, conns := size(4000, 100_000), size(100, 500)
	c := newCounter(t)
	p := loaded(t, roomy)
	begin := time.Now()
	accepted := burst(t, p, events, conns, func(int) string { return "/http://" + c.addr + "/pb" }, bytes.Repeat([]byte("x"), 500))
	took := time.Since(begin)
	c.wait(t, accepted, 5*time.Minute)
	memory := residentAnonymous(t, p)
	fmt.Printf("burst: %d events from %d connections in %.1f s, %d accepted, all delivered after %.1f s, %d MiB resident\n",
		events, conns, took.Seconds(), accepted, time.Since(begin).Seconds(), memory>>20)
	if memory > 400<<20 {
		t.Errorf("%d MiB of anonymous memory are resident", memory>>20)
	}
}

// A burst into a spool that is too small for it: 503 with Retry-After, and what was accepted comes.
func TestBurstIntoASmallSpool(t *testing.T) {
	parallelWhereLean(t)
	events := size(3000, 30_000)
	c := newCounter(t)
	c.down.Store(true)
	p := loaded(t, strings.Replace(roomy, "8GiB", fmt.Sprintf("%dMiB", size(8, 64)), 1)+
		"defaults: { retry: { max_attempts: 100, base_delay: 100ms, max_delay: 500ms }, breaker: { cooldown: 500ms, max_cooldown: 1s } }\n")
	accepted := burst(t, p, events, 100, func(int) string { return "/http://" + c.addr + "/down" }, bytes.Repeat([]byte("x"), 4000))
	if accepted == 0 || accepted == events {
		t.Fatalf("%d of %d events were accepted", accepted, events)
	}
	c.down.Store(false)
	c.wait(t, accepted, 5*time.Minute)
}

// Very many endpoints, each with its own line, gate and state.
func TestManyEndpoints(t *testing.T) {
	parallelWhereLean(t)
	n := size(1000, 10_000)
	c := newCounter(t)
	var b strings.Builder
	b.WriteString(roomy + "endpoints:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - { name: e%d, url: \"http://%s/in/%d\" }\n", i, c.addr, i)
	}
	begin := time.Now()
	p := loaded(t, b.String())
	ready := time.Since(begin)
	accepted := burst(t, p, 3*n, 64, func(i int) string { return fmt.Sprintf("/to/e%d", i%n) }, []byte("x"))
	if accepted != 3*n {
		t.Fatalf("%d of %d events were accepted", accepted, 3*n)
	}
	c.wait(t, accepted, 5*time.Minute)
	memory := residentAnonymous(t, p)
	fmt.Printf("%d endpoints: ready after %.1f s, three events to each delivered after %.1f s, %d MiB resident\n", n, ready.Seconds(), time.Since(begin).Seconds(), memory>>20)
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	intime.Hold(t, 10*time.Second, "to be ready again", func() time.Duration {
		p.kill() // nothing at first
		begin := time.Now()
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	})
}

// deliver posts one event and waits until it came.
func (c *counter) deliver(t *testing.T, p *process, path, id string) {
	t.Helper()
	req, err := http.NewRequest("POST", "http://"+p.ingest+path, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Postern-Event-Id", id)
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := poll(2*time.Minute, "event "+id, func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.seen[id] > 0, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// One endpoint with a great backlog takes nothing from a healthy one, and the backlog is delivered when it is back.
func TestBacklogBesideAHealthyEndpoint(t *testing.T) {
	parallelWhereLean(t)
	n := size(10_000, 1_000_000)
	c := newCounter(t)
	c.down.Store(true)
	p := loaded(t, roomy+fmt.Sprintf("defaults: { retry: { max_attempts: 100, base_delay: 200ms, max_delay: 1s }, breaker: { cooldown: 1s, max_cooldown: 2s } }\n"+
		"endpoints:\n  - { name: down, url: \"http://%[1]s/down\" }\n  - { name: healthy, url: \"http://%[1]s/healthy\" }\n", c.addr))
	if accepted := burst(t, p, n, 64, func(int) string { return "/to/down" }, bytes.Repeat([]byte("x"), 300)); accepted != n {
		t.Fatalf("%d of %d events were accepted", accepted, n)
	}
	var took []time.Duration
	healthy := 0
	intime.Hold(t, 5*time.Second, "the slowest of a healthy endpoint's events", func() time.Duration {
		took = took[:0]
		for range 100 {
			begin := time.Now()
			c.deliver(t, p, "/to/healthy", fmt.Sprintf("healthy-%d", healthy))
			took = append(took, time.Since(begin))
			healthy++
		}
		slices.Sort(took)
		return took[99]
	})
	memory := residentAnonymous(t, p)
	fmt.Printf("%d events wait for one endpoint: another's are delivered after %v in the median, %v at most; %d MiB resident\n",
		n, took[50].Round(time.Millisecond), took[99].Round(time.Millisecond), memory>>20)
	if memory > 400<<20 {
		t.Errorf("%d MiB of anonymous memory are resident", memory>>20)
	}
	c.down.Store(false)
	c.wait(t, n+healthy, time.Duration(120+n/1000)*time.Second)
}

// parallelWhereLean lets the lean forms run beside each other; the full ones measure, one by one.
func parallelWhereLean(t *testing.T) {
	if !*heavy {
		t.Parallel()
	}
}

// A backlog that was drained leaves a file that is short again, and acknowledgements that are as fast as a fresh Postern's,
// which is asked in turns with it: the machine is not always the same, least of all beside other tests.
func TestGrowthAndAfter(t *testing.T) {
	parallelWhereLean(t)
	n, rounds, each := size(8000, 200_000), size(3, 20), size(500, 5000)
	c := newCounter(t)
	c.down.Store(true)
	config := strings.Replace(roomy, "8GiB", fmt.Sprintf("%dMiB", size(128, 2048)), 1) +
		"defaults: { retry: { max_attempts: 10000, base_delay: 100ms, max_delay: 500ms }, breaker: { cooldown: 500ms, max_cooldown: 1s } }\n"
	p, fresh := loaded(t, config), loaded(t, config)
	body := bytes.Repeat([]byte("0123456789"), 200)
	sent := 0
	post := func(p *process, n, conns int, where string) {
		t.Helper()
		if accepted := burst(t, p, n, conns, func(int) string { return "/http://" + c.addr + where }, body); accepted != n {
			t.Fatalf("%d of %d events were accepted", accepted, n)
		}
		sent += n
	}
	post(p, n, 64, "/down")
	peak := measure(t, p).Files
	c.down.Store(false)
	c.wait(t, sent, 5*time.Minute)
	acknowledgementsLikeNew(t, func(fromNew bool) time.Duration {
		from := p
		if fromNew {
			from = fresh
		}
		begin := time.Now()
		post(from, 1, 1, "/up")
		return time.Since(begin)
	})
	for range rounds {
		post(p, each, 64, "/up")
	}
	c.wait(t, sent, 5*time.Minute)
	// The reserve is part of a small file, too.
	short := func() (bool, error) { return measure(t, p).Files < peak/int64(size(5, 10)), nil }
	if err := poll(3*time.Minute, "the file to be short again", short); err != nil {
		t.Errorf("%v: %d bytes, %d at its peak", err, measure(t, p).Files, peak)
	}
	fmt.Printf("%d events of 2 KB in and out: file %d MiB at its peak, %d MiB afterwards\n", n, peak>>20, measure(t, p).Files>>20)
}

// acknowledgementsLikeNew holds the times of a lone client's acknowledgements against a new Postern's: the median is at most
// twice as long, and in full size the 99th percentile, too. In the lean form, beside other tests, that one tells about
// the machine alone. A disk that has a bad moment may have it in one's turns: the best of five comparisons counts.
func acknowledgementsLikeNew(t *testing.T, acknowledge func(fromNew bool) time.Duration) {
	t.Helper()
	percents := []int{50}
	if *heavy {
		percents = append(percents, 99)
	}
	intime.Hold(t, 0, "beyond twice a new Postern's, an acknowledgement", func() (beyond time.Duration) {
		var used, unused []time.Duration
		for range size(200, 1000) {
			used, unused = append(used, acknowledge(false)), append(unused, acknowledge(true))
		}
		slices.Sort(used)
		slices.Sort(unused)
		for _, percent := range percents {
			after, before := used[len(used)*percent/100], unused[len(unused)*percent/100]
			fmt.Printf("percentile %d of a lone acknowledgement: %v after a backlog, %v by a new Postern\n", percent, after.Round(10*time.Microsecond), before.Round(10*time.Microsecond))
			beyond = max(beyond, after-2*before)
		}
		return beyond
	})
}
