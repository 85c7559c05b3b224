package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"postern/sync/pgtest"
)

// The disk of Postgres is full: whoever posts and whoever receives does not notice, status says what is in the way, and
// with room again every row arrives, none set aside as refused.
func TestFullDiskOfPostgres(t *testing.T) {
	t.Parallel()
	disk := newPostgresDisk(t)
	if disk == nil {
		return
	}
	server := pgtest.StartOn(t, pgtest.Disk{Holder: disk.Holder, Dir: disk.Dir})
	db := pgtest.On(t, server.DSN())
	r := newReceiver(t, nil)
	p := startPostern(t, synced(db, ""))
	total := 0
	deliver := func(n int) {
		t.Helper()
		for range n {
			p.accept("POST", "/"+r.url("/"), "x")
		}
		total += n
		r.wait(total, patience)
	}
	type status struct {
		Sync struct {
			Connected    bool
			RejectedRows int `json:"rejected_rows"`
			Error        string
		}
	}
	get := func() (s status) {
		p.api("GET", "status", "", &s)
		return s
	}
	deliver(20)
	p.eventually(patience, "the first rows to arrive", func() bool {
		return get().Sync.Connected && ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == total
	})
	junk := disk.fill()
	// What has room in half-filled pages still goes in; so many events do not.
	for get().Sync.Error == "" && total < 5000 {
		deliver(200)
	}
	// Where the log of Postgres has no room either, its server ends.
	p.eventually(patience, "the trouble to be told", func() bool {
		text := get().Sync.Error
		return strings.Contains(text, "the disk of Postgres is full: make room there") || text != "" && !server.Running()
	})
	deliver(200)
	if s := get(); s.Sync.Connected || s.Sync.RejectedRows != 0 {
		t.Errorf("with a full disk at Postgres: %+v", s.Sync)
	}
	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	if !server.Running() {
		must(t, server.Up())
	}
	p.eventually(patience, "all rows to arrive", func() bool {
		return get().Sync.Connected && ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == total
	})
	if n := ask[int](t, db, "SELECT sum(attempts)::integer FROM endpoint_hours"); n != total {
		t.Errorf("%d attempts are counted, want %d", n, total)
	}
	if s := get(); s.Sync.RejectedRows != 0 {
		t.Errorf("%d rows were set aside", s.Sync.RejectedRows)
	}
	if n := len(r.requests()); n != total {
		t.Errorf("the receiver saw %d requests for %d events", n, total)
	}
}

// newPostgresDisk is a disk that has room for a new Postgres and not for much more, or nil where none can be had.
func newPostgresDisk(t *testing.T) *smallDisk {
	t.Helper()
	_, enter := exec.LookPath("nsenter")
	_, become := exec.LookPath("setpriv")
	if os.Getuid() != 0 || enter != nil || become != nil {
		t.Log("NOT TESTED with a really full disk of Postgres: that takes root, nsenter and setpriv")
		return nil
	}
	disk := newDisk(t, 128)
	if disk == nil {
		return nil
	}
	// The server's user passes through.
	if err := os.Chmod(filepath.Dir(disk.Dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return disk
}
