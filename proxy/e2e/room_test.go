package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/e2e/browser"
	"postern/sync/pgtest/intime"
)

// pour posts n bodies of 700 bytes over 32 connections, so that commits are big, and returns the accepted IDs. What was
// not accepted must be a 503 that says when to come again.
func pour(t *testing.T, p *postern, n int, path, name string) map[string]bool {
	t.Helper()
	accepted := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := w; i < n; i += 32 {
				id := fmt.Sprintf("%s-%d", name, i)
				a, err := p.try("POST", path, strings.Repeat("x", 700), "Postern-Event-Id: "+id)
				switch {
				case err != nil:
					t.Error(err)
					return
				case a.Status == 202:
					mu.Lock()
					accepted[id] = true
					mu.Unlock()
				case a.Status != 503 || a.Header.Get("Retry-After") == "":
					t.Errorf("status %d, Retry-After %q: %s", a.Status, a.Header.Get("Retry-After"), a.Body)
					return
				}
			}
		})
	}
	wg.Wait()
	return accepted
}

// oncePerEvent checks that exactly these events came, each once.
func oncePerEvent(t *testing.T, r *receiver, accepted map[string]bool) {
	t.Helper()
	came := r.byEvent()
	for id := range accepted {
		if came[id] != 1 {
			t.Errorf("event %s came %d times", id, came[id])
		}
	}
	for id := range came {
		if !accepted[id] {
			t.Errorf("event %s came, and its client was told 503", id)
		}
	}
}

// downForNow is for a receiver that is down at first: the breaker keeps the waiting events cheap, and tries soon.
const downForNow = "targets: { allow_private: true }\nspool: { max_endpoint_share: 1 }\n" +
	"defaults: { retry: { max_attempts: 10000, base_delay: 200ms, max_delay: 500ms }, breaker: { cooldown: 1s, max_cooldown: 1s } }\n"

// Full: 503 and not ready; deliveries go on and make room; all is well again by itself.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	p := startPostern(t, strings.Replace(downForNow, "{ max_endpoint_share: 1 }", "{ max_endpoint_share: 1, max_bytes: 4MiB }", 1))
	accepted := pour(t, p, 4000, "/http://"+addr+"/", "e")
	if len(accepted) < 1000 || len(accepted) == 4000 {
		t.Fatalf("%d of 4,000 events of 700 bytes were accepted by a spool of 4 MiB", len(accepted))
	}
	refused := p.send("POST", "/http://"+addr+"/", strings.Repeat("x", 64<<10))
	checkProblem(t, refused, 503, "max_bytes")
	if p.probe("/readyz") != 503 || p.probe("/healthz") != 200 {
		t.Errorf("full: /readyz %d, /healthz %d; want 503 and 200", p.probe("/readyz"), p.probe("/healthz"))
	}
	const why = "the spool is full: not every event fits, smaller ones may"
	p.typed(0, "status", "NO\n", why)
	p.typed(0, "status --json", `"ready": false`, why)
	p.typed(0, "top", "NOT READY", why)
	p.gauges(map[string]float64{"postern_ready": 0, "postern_spool_writable": 1, "postern_spool_full": 1, "postern_spool_max_bytes": 4 << 20})
	if free := p.metric("postern_spool_free_bytes"); free > 64<<10 {
		t.Errorf("a spool that refused 64 KiB has %v bytes free", free)
	}
	if n := p.metric("postern_endpoint_waiting", addr); n < float64(len(accepted)-32) {
		t.Errorf("%v of %d events wait", n, len(accepted))
	}
	if size := spoolSize(t, p); size > 4<<20 {
		t.Errorf("the data directory has %d bytes, max_bytes is 4 MiB", size)
	}
	if p.metric("postern_rejected_total") < 1 {
		t.Error("postern_rejected_total counts nothing")
	}
	r := newReceiverOn(t, addr, nil, nil)
	p.settled(patience)
	oncePerEvent(t, r, accepted)
	p.eventually(patience, "/readyz to be 200 again", func() bool { return p.probe("/readyz") == 200 })
	p.gauges(map[string]float64{"postern_ready": 1, "postern_spool_writable": 1, "postern_spool_full": 0})
	if free := p.metric("postern_spool_free_bytes"); free < 1<<20 || free > 4<<20 {
		t.Errorf("an empty spool of 4 MiB has %v bytes free", free)
	}
	p.accept("POST", "/"+r.url("/"), strings.Repeat("x", 64<<10))
}

// spoolSize is what the files of the spool take.
func spoolSize(t *testing.T, p *postern) (size int64) {
	t.Helper()
	files, err := os.ReadDir(p.dataDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// An endpoint that is down fills its share and no more: its own events get 503, the others' do not.
func TestEndpointShare(t *testing.T) {
	t.Parallel()
	down, r := freeAddr(t), newReceiver(t, nil)
	p := startPostern(t, strings.Replace(downForNow, "max_endpoint_share: 1", "max_endpoint_share: 0.25, max_bytes: 8MiB", 1))
	accepted := pour(t, p, 3500, "/http://"+down+"/", "e")
	if len(accepted) < 1000 || len(accepted) == 3500 {
		t.Fatalf("%d of 3,500 events of 700 bytes were accepted for a share of 2 MiB", len(accepted))
	}
	checkProblem(t, p.send("POST", "/http://"+down+"/", strings.Repeat("x", 700)), 503, "max_endpoint_share")
	for range 20 {
		p.accept("POST", "/"+r.url("/"), strings.Repeat("x", 700))
	}
	r.wait(20, patience)
	if ready := p.probe("/readyz"); ready != 200 {
		t.Errorf("/readyz %d: one endpoint's share is not the spool", ready)
	}
	const full = "its share of the spool is full"
	for _, command := range []string{"endpoints", "endpoints show http://" + down, "top"} {
		p.typed(0, command, full)
	}
	tab := browser.Open(t, p.admin)
	tab.Go("/")
	tab.SeeText(".attention li", down+" "+full)
}

// A backlog makes the file grow; once it is drained, the disk gets the room back, and what comes and goes afterwards
// does not make it grow again.
func TestFileGrowth(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	// The reserve is part of the file, and smaller in a smaller spool, as the events are fewer here than in the field.
	p := startPostern(t, strings.Replace(downForNow, "max_endpoint_share: 1", "max_endpoint_share: 1, max_bytes: 256MiB", 1))
	floodBytes(t, p, 20_000, 2000, "/http://"+addr+"/")
	peak := spoolSize(t, p)
	if peak < 40_000_000 {
		t.Fatalf("the spool has %d bytes with 20,000 events of 2 KB", peak)
	}
	r := newReceiverOn(t, addr, nil, nil)
	p.settled(patience)
	p.eventually(patience, "the file to shrink below a tenth of its peak", func() bool { return spoolSize(t, p) < peak/10 })
	for range 5 {
		floodBytes(t, p, 1000, 2000, "/http://"+addr+"/")
		p.settled(patience)
	}
	p.eventually(patience, "the file to stay below a quarter of its peak", func() bool { return spoolSize(t, p) < peak/4 })
	if n := len(r.byEvent()); n != 25_000 {
		t.Errorf("%d events came, want 25,000", n)
	}
}

// floodBytes accepts n events with bodies of this size over 16 connections.
func floodBytes(t *testing.T, p *postern, n, size int, path string) {
	t.Helper()
	body := strings.Repeat("0123456789", size/10)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				if a, err := p.try("POST", path, body); err != nil || a.Status != 202 {
					t.Errorf("event %d: %v %d %s", i, err, a.Status, a.Body)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A backlog far larger than the memory it may use: ready at once, small, and delivered.
func TestBacklogWithLittleMemory(t *testing.T) {
	t.Parallel()
	const events = 6000 // of 18 KB: 108 MB
	addr := freeAddr(t)
	p := startPostern(t, strings.Replace(downForNow, "max_endpoint_share: 1", "max_endpoint_share: 1, max_bytes: 2GiB", 1))
	floodBytes(t, p, events, 18_000, "/http://"+addr+"/")
	p.stop(patience)
	r := newReceiverOn(t, addr, nil, nil)
	p.env = []string{"GOMEMLIMIT=48MiB"}
	started := false
	intime.Hold(t, 5*time.Second, "to be ready", func() time.Duration {
		if started {
			p.kill()
		}
		started = true
		start := time.Now()
		p.start()
		return time.Since(start)
	})
	most := 0
	p.eventually(patience, "the backlog to be delivered", func() bool {
		most = max(most, residentAnonymous(t, p))
		return len(r.byEvent()) == events
	})
	if most > 80<<20 {
		t.Errorf("%d MiB of anonymous memory were resident, GOMEMLIMIT is 48 MiB", most>>20)
	}
}

// residentAnonymous is the memory that the process really has, without the files that it maps.
func residentAnonymous(t *testing.T, p *postern) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.cmd.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	kb := 0
	for line := range strings.Lines(string(b)) {
		fmt.Sscanf(line, "RssAnon: %d kB", &kb)
	}
	return kb << 10
}
