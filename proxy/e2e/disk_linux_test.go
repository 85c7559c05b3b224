package e2e

import (
	"errors"
	"testing"

	"postern/proxy/stage"
)

// smallDisk is a tmpfs of a test's own.
type smallDisk struct {
	*stage.Disk
	t    *testing.T
	path string // as everybody may name it
}

// newSmallDisk mounts one of 4 MiB, or returns nil and says what was not tested where the machine allows no namespaces. The full
// spool is tested everywhere, by TestMaxBytes.
func newSmallDisk(t *testing.T) *smallDisk { return newDisk(t, 4) }

// newDisk is newSmallDisk of another size, in MiB.
func newDisk(t *testing.T, mib int) *smallDisk {
	t.Helper()
	disk, err := stage.NewDisk(t.TempDir(), stage.Tmpfs, mib)
	if errors.Is(err, stage.ErrNoDisk) {
		t.Logf("NOT TESTED on a real full disk: %v", err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	return &smallDisk{disk, t, disk.Path}
}

// remount makes it read-only, or writable again. Nothing may be open for writing.
func (d *smallDisk) remount(mode string) {
	d.t.Helper()
	if err := d.Remount(mode == "ro"); err != nil {
		d.t.Fatal(err)
	}
}

// fill takes all that is left of it for a file of junk, and tells the file's name.
func (d *smallDisk) fill() string {
	d.t.Helper()
	name, err := d.Fill()
	if err != nil {
		d.t.Fatal(err)
	}
	return name
}
