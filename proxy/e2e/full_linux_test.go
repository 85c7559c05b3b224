package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The disk fills up while the receiver is down. What was accepted is delivered once, however full the disk is, since
// results go to room that was allocated before; ingest recovers when there is room, and a restart sends nothing again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	if disk == nil {
		return
	}
	addr := freeAddr(t)
	p := newPostern(t, downForNow)
	p.data = filepath.Join(disk.path, "data")
	p.start()
	accepted := pour(t, p, 2000, "/http://"+addr+"/", "before")
	if len(accepted) < 500 {
		t.Fatalf("only %d events fitted on a disk of 4 MiB", len(accepted))
	}
	junk := disk.fill()
	for id := range pour(t, p, 500, "/http://"+addr+"/", "meanwhile") { // into what was allocated already
		accepted[id] = true
	}
	if a := p.send("POST", "/http://"+addr+"/", strings.Repeat("x", 700)); a.Status != 503 {
		t.Fatalf("on a full disk: status %d: %s", a.Status, a.Body)
	}
	if ready, alive := p.probe("/readyz"), p.probe("/healthz"); ready != 503 || alive != 200 {
		t.Errorf("on a full disk: /readyz %d, /healthz %d; want 503 and 200", ready, alive)
	}

	r := newReceiverOn(t, addr, nil, nil)
	p.settled(patience)
	oncePerEvent(t, r, accepted)
	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	p.eventually(patience, "/readyz to be 200 again", func() bool { return p.probe("/readyz") == 200 })
	accepted[p.accept("POST", "/http://"+addr+"/", "room again")] = true
	r.wait(len(accepted), patience)
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.start()
	accepted[p.accept("POST", "/http://"+addr+"/", "after the restart")] = true
	r.wait(len(accepted), patience)
	oncePerEvent(t, r, accepted)
}

// Killed on a full disk, and started on it: results are kept, and the spool opens.
func TestKilledOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	if disk == nil {
		return
	}
	addr := freeAddr(t)
	p := newPostern(t, downForNow)
	p.data = filepath.Join(disk.path, "data")
	p.start()
	accepted := pour(t, p, 1000, "/http://"+addr+"/", "before")
	disk.fill()
	p.kill()
	r := newReceiverOn(t, addr, nil, nil)
	p.launch()
	p.eventually(patience, "every accepted event to come", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("postern exited with %d on a full disk", p.code)
		default:
		}
		return len(r.byEvent()) == len(accepted)
	})
	oncePerEvent(t, r, accepted)
}

// Started on a disk that others have filled, with free pages in the file: no more is taken than can be recorded when it is
// delivered, and the log names the disk, not a bound that nobody has reached.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	if disk == nil {
		return
	}
	r := newReceiver(t, nil)
	p := newPostern(t, calm)
	p.data = filepath.Join(disk.path, "data")
	p.start()
	body := strings.Repeat("x", 60_000)
	for range 20 {
		p.accept("POST", "/"+r.url("/"), body)
	}
	p.settled(patience)
	p.stop(patience)
	disk.fill()
	p.start()
	accepted := 20
	for range 40 {
		if a := p.send("POST", "/"+r.url("/"), body, "Postern-Delay: 1s"); a.Status == 202 {
			accepted++
		}
	}
	r.wait(accepted, patience)
	p.settled(patience)
	log := p.log.String()
	if strings.Contains(log, "cannot be written") || strings.Contains(log, "spool.max_bytes is used up") || !strings.Contains(log, "the disk under spool.dir has no room") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestReadOnlyAtStart(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	if disk == nil {
		return
	}
	r := newReceiver(t, nil)
	p := newPostern(t, calm)
	p.data = filepath.Join(disk.path, "data")
	p.start()
	p.accept("POST", "/"+r.url("/"), "x")
	r.wait(1, patience)
	p.stop(patience)
	disk.remount("ro")
	if code, text := failing(t, p, patience); code != 1 || !strings.Contains(text, "read-only") {
		t.Errorf("exit code %d: %s", code, text)
	}
	disk.remount("rw")
	p.start()
	p.accept("POST", "/"+r.url("/"), "x")
	r.wait(2, patience)
}

// The disk refuses writes while Postern runs, here by a limit on the size of files: ingest says 503, nothing new is
// sent, the result of what was on its way waits in memory, and all is well again by itself.
func TestDiskRefusesWrites(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReceiver(t, func(n int, _ request) reply {
		if n == 1 {
			<-release
		}
		return reply{}
	})
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { timeout: 30s, concurrency: 1, retry: { base_delay: 100ms, max_delay: 200ms } }\n")
	first := p.accept("POST", "/"+r.url("/"), "on its way")
	r.wait(1, patience)
	second := p.accept("POST", "/"+r.url("/"), "waiting")

	var usual unix.Rlimit
	pid := p.cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &usual); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: usual.Max}, nil); err != nil {
		t.Fatal(err)
	}
	a := p.send("POST", "/"+r.url("/"), "refused")
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("status %d: %s", a.Status, a.Body)
	}
	if ready, alive := p.probe("/readyz"), p.probe("/healthz"); ready != 503 || alive != 200 {
		t.Errorf("/readyz %d, /healthz %d; want 503 and 200", ready, alive)
	}
	p.gauges(map[string]float64{"postern_ready": 0, "postern_spool_writable": 0, "postern_spool_full": 0})
	close(release)
	// Its result cannot be recorded; the next event has a slot now, and must not leave.
	p.eventually(patience, "the retries of the commit to be told", func() bool { return strings.Count(p.log.String(), "cannot be written") > 0 })
	if a := p.send("POST", "/"+r.url("/"), "refused"); a.Status != 503 {
		t.Errorf("status %d: %s", a.Status, a.Body)
	}
	if n := len(r.requests()); n != 1 {
		t.Errorf("%d requests while nothing can be recorded, want 1", n)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &usual, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first, second} {
		if e := p.waitState(id, "delivered", patience); len(e.Attempts) != 1 {
			t.Errorf("event %s has %d attempts, want 1", id, len(e.Attempts))
		}
	}
	p.eventually(patience, "/readyz to be 200 again", func() bool { return p.probe("/readyz") == 200 })
	p.accept("POST", "/"+r.url("/"), "again")
	if n := len(r.wait(3, patience)); n != 3 {
		t.Errorf("%d requests in all, want 3", n)
	}
}
