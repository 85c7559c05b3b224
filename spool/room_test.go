package spool

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fill appends until the spool refuses, and returns how many it took.
func (r *rig) fill(endpoint string, size int) int {
	r.t.Helper()
	var mu sync.Mutex
	taken, full := 0, false
	for before := -1; before < taken || !full; {
		before, full = taken, false
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				mu.Lock()
				r.n++
				id := fmt.Sprintf("e%d", r.n)
				mu.Unlock()
				ev := event(id, endpoint, strings.Repeat("x", size))
				ev.Target += r.target
				_, err := r.Append(r.t.Context(), ev)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					taken++
				case errors.Is(err, ErrFull) || errors.Is(err, ErrEndpointFull):
					full = true
				default:
					r.t.Errorf("append: %v", err)
					full = true
				}
			})
		}
		wg.Wait()
	}
	return taken
}

// drain delivers everything, in batches as a scheduler would.
func (r *rig) drain(endpoint string) (ids []string) {
	r.t.Helper()
	for {
		leases := r.lease(endpoint, 50)
		if len(leases) == 0 {
			return ids
		}
		var wg sync.WaitGroup
		for _, l := range leases {
			wg.Add(1)
			res := delivered(l)
			res.Done = func(err error) {
				if err != nil {
					r.t.Errorf("finish: %v", err)
				}
				wg.Done()
			}
			ids = append(ids, l.Event.ID)
			r.Finish(l, res)
		}
		wg.Wait()
	}
}

// until waits for a condition that the committer brings about by itself.
func (r *rig) until(what string, ok func(Stats) bool) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok(r.Stats()) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not %s: %+v", what, r.Stats())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestFillAndDrain fills a spool again and again with events of different sizes: it takes about as much each time, never
// grows beyond its bound, records every result, and loses nothing.
func TestFillAndDrain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		maxBytes int64
		size     int
		least    int64 // percent of maxBytes that can be used
	}{
		{4 * mib, 100, 40}, {4 * mib, 3000, 40}, {4 * mib, 20_000, 40}, {4 * mib, 200_000, 40}, {2 * mib, 500_000, 20},
		{mib, 100, 20}, {mib, 3000, 30}, {mib, 20_000, 30}, {mib, 200_000, 20},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d in %d MiB", tt.size, tt.maxBytes/mib), func(t *testing.T) {
			size := tt.size
			r := newRig(t, func(c *Config) {
				c.MaxBytes = tt.maxBytes
				c.MaxEventBytes = tt.maxBytes / 4
				c.MaxEndpointShare = 1
			})
			r.store.cur.db.NoSync = true
			first := 0
			for round := range 3 {
				n := r.fill(endpointA, size)
				if round == 0 {
					first = n
				}
				if !r.Stats().Full {
					t.Errorf("round %d: not full: %+v", round, r.Stats())
				}
				if n < first/2 || n == 0 {
					t.Errorf("round %d: %d events fit, %d did in the first", round, n, first)
				}
				if info, err := os.Stat(r.dir.file()); err != nil || info.Size() > r.cfg.MaxBytes {
					t.Errorf("round %d: the file has %d bytes", round, info.Size())
				}
				if got := len(r.drain(endpointA)); got != n {
					t.Errorf("round %d: %d accepted, %d delivered", round, n, got)
				}
				r.until("empty again", func(st Stats) bool { return !st.Full })
			}
			if used := int64(first) * int64(size+300); used < r.cfg.MaxBytes*tt.least/100 {
				t.Errorf("only %d bytes fit into %d", used, r.cfg.MaxBytes)
			}
		})
	}
}

func TestEndpointShare(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxBytes = 8 * mib; c.MaxEventBytes = mib; c.MaxEndpointShare = 0.25 })
	r.fill(endpointA, 50_000)
	if st := r.Stats(); st.Full {
		t.Error("the spool counts as full because one endpoint is")
	}
	if got := r.Counts(endpointA).Bytes; got > 2*mib || got < 2*mib-100_000 {
		t.Errorf("the endpoint has %d bytes", got)
	}
	r.append(event("other", "https://b.example", "x"))
}

func TestHistoryGivesWay(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.MaxBytes, c.MaxEventBytes = 8*mib, mib
		c.HistoryMaxBytes, c.OutboxMaxBytes = 64_000, 32_000
		c.Outbox = true
	})
	r.store.cur.db.NoSync = true
	for i := range 600 {
		r.append(event(fmt.Sprint(i), endpointA, "x"))
	}
	r.drain(endpointA)
	st := r.Stats()
	if st.HistoryBytes > 64_000 || st.HistoryBytes < 32_000 {
		t.Errorf("history has %d bytes", st.HistoryBytes)
	}
	if st.OutboxRows == 0 || st.HistoryDropped == 0 {
		t.Errorf("stats %+v", st)
	}
	if rows, _, _ := r.Outbox(1); len(rows) != 1 || rows[0].Index < 100 {
		t.Errorf("the oldest row is still there: %+v", rows)
	}
	if _, err := r.Get("0", false); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest summary: %v", err)
	}
	if _, err := r.Get("599", false); err != nil {
		t.Errorf("the newest summary: %v", err)
	}
}

const smallDiskEnv = "POSTERN_TEST_SPOOL_SMALL_DISK"

// TestSmallDisk runs itself once more in a mount namespace of its own, on a tmpfs of 4 MiB. Where the machine allows no
// namespaces, TestFillAndDrain and TestFullFileKeepsResults are what there is.
func TestSmallDisk(t *testing.T) {
	if os.Getenv(smallDiskEnv) != "" {
		onSmallDisk(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), smallDiskEnv+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Logf("NOT TESTED on a real full disk, because this machine allows no mount namespace: %v", err)
		return
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("on the small disk: %v\n%s", err, out)
	}
}

func onSmallDisk(t *testing.T) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	r := newRig(t, func(c *Config) {
		c.Dir = filepath.Join(dir, "spool")
		c.MaxBytes = Defaults().MaxBytes
	})
	n := 0
	for ; n < 2000; n += 100 {
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { r.append(event(fmt.Sprint("first", n+i), endpointA, strings.Repeat("x", 700))) })
		}
		wg.Wait()
	}
	junk := filepath.Join(dir, "junk")
	fillDisk(t, junk)
	n += r.fill(endpointA, 700)
	if !r.Stats().Full {
		t.Error("the disk is full and the spool is not")
	}
	r.reopen() // also with a disk that has no byte left
	if sent := r.drain(endpointA); len(sent) != n {
		t.Errorf("%d accepted, %d delivered", n, len(sent))
	}
	r.until("writable", func(st Stats) bool { return !st.Full && st.Writable })
	r.reopen()
	if again := r.drain(endpointA); len(again) != 0 {
		t.Errorf("%d sent again after the restart", len(again))
	}
	more := r.fill(endpointA, 700)
	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	r.until("room again with the junk gone", func(st Stats) bool { return !st.Full })
	r.append(event("last", endpointA, "x"))
	if got := len(r.drain(endpointA)); got != more+1 {
		t.Errorf("%d accepted, %d delivered", more+1, got)
	}
}

// fillDisk writes until there is no byte left.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
