package spool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// refuseWrites makes the handle that bbolt writes by one for reading, so that its commits fail for real, and returns a
// function that gives the old one back.
func refuseWrites(r *rig) (restore func()) {
	r.t.Helper()
	path := r.dirOf().file()
	fds, err := os.ReadDir("/proc/self/fd")
	r.must(err)
	for _, e := range fds {
		name, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		fd, _ := strconv.Atoi(e.Name())
		if name != path || fd == int(r.store.file.Fd()) {
			continue
		}
		old, err := unix.Dup(fd)
		r.must(err)
		f, err := os.Open(path)
		r.must(err)
		r.must(unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC))
		r.must(f.Close())
		return func() {
			r.must(unix.Dup3(old, fd, unix.O_CLOEXEC))
			r.must(unix.Close(old))
		}
	}
	r.t.Fatalf("no handle of bbolt's on %s", path)
	return nil
}

// TestDamageMetAfterAFailedCommit: bbolt looks through the file after a commit that failed, in a goroutine where a page
// that lies would end the process. It must not get that far; and where nothing is damaged nothing is in its way.
func TestDamageMetAfterAFailedCommit(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprintf("damaged=%v", damaged), func(t *testing.T) {
			r := newRig(t)
			for i := range 300 {
				r.append(event(fmt.Sprint(i), endpointA, fmt.Sprintf("body-%03d%500s", i, "")))
			}
			restore := refuseWrites(r)
			if damaged {
				overwriteLeaves(r)
			}
			if _, err := r.Append(t.Context(), event("refused", endpointA, "x")); err == nil {
				t.Fatal("an event was accepted that cannot have been written")
			}
			restore()
			if !damaged {
				r.accepted("again")
				return
			}
			if _, err := r.Append(t.Context(), event("after", endpointA, "x")); err == nil || r.Stats().Writable {
				t.Errorf("after damage: error %v, writable %v", err, r.Stats().Writable)
			}
			_ = r.Close(t.Context())
			r.open()
			if st := r.Stats(); st.Pending < 150 || st.SalvageLost == 0 || st.Pending+st.SalvageLost != 300 {
				t.Errorf("%d events are there, %d are said to be lost, of 300", st.Pending, st.SalvageLost)
			}
			r.append(event("anew", endpointA, "x"))
		})
	}
}

// accepted tries an event until the committer has found the disk in order again.
func (r *rig) accepted(id string) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		_, err := r.Append(r.t.Context(), event(id, endpointA, "x"))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("append: %v", err)
		}
	}
}

// overwriteLeaves spoils pages in the middle that hold events and that no commit touches, behind the back of all.
func overwriteLeaves(r *rig) {
	r.t.Helper()
	file, err := os.ReadFile(r.dirOf().file())
	r.must(err)
	found := false
	for i := 2; i < len(file)/pageSize; i++ {
		if bytes.Contains(page(file, i), []byte("body-1")) && !bytes.Contains(page(file, i), []byte("body-2")) {
			_, err := r.store.file.WriteAt(bytes.Repeat([]byte{0xff}, pageSize), int64(i*pageSize))
			r.must(err)
			found = true
		}
	}
	if !found {
		r.t.Fatal("no page is full of events")
	}
}
