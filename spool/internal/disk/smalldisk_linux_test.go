package disk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDiskEnv tells a child of the test that it runs in a mount namespace of its own.
const smallDiskEnv = "POSTERN_TEST_SMALL_DISK"

const smallDiskBytes = 1 << 20

// onSmallDisk runs body with a directory on a tmpfs of 1 MiB. The test runs itself once more as a child in namespaces of
// its own, so that nothing stays mounted whatever happens. Where the machine allows no namespaces it says what was not
// tested; the handling of ENOSPC itself is tested everywhere, by TestAllocateGivesBackAfterFailure.
func onSmallDisk(t *testing.T, body func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(smallDiskEnv) != "" {
		body(t, mountSmallDisk(t))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), smallDiskEnv+"=1", "GORACE=atexit_sleep_ms=0") // no second of waiting at each exit
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

func mountSmallDisk(t *testing.T) string {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make the mounts private: %v", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestAllocateOnASmallDisk(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, dir string) {
		for way, a := range map[string]allocator{"by the system": {fallocate, never}, "both ways": {fallocate, always}, "by zeros": {unsupported, nil}} {
			f, err := os.Create(filepath.Join(dir, "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString("kept"); err != nil {
				t.Fatal(err)
			}
			if err := a.allocate(f, 2*smallDiskBytes); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: allocate = %v, want ENOSPC", way, err)
			}
			if got := sizeOf(t, f); got != 4 {
				t.Errorf("%s: size %d after the failure, want 4", way, got)
			}
			if err := a.allocate(f, smallDiskBytes/2); err != nil {
				t.Errorf("%s: half of the disk was refused after a failure: %v", way, err)
			}
			if err := os.Remove(f.Name()); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	})
}

func TestAllocatedRoomIsThereOnAFullDisk(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, dir string) {
		reserve, err := os.Create(filepath.Join(dir, "reserve"))
		if err != nil {
			t.Fatal(err)
		}
		defer reserve.Close()
		const size = 256 << 10
		if err := Allocate(reserve, size); err != nil {
			t.Fatal(err)
		}
		junk, err := os.Create(filepath.Join(dir, "junk"))
		if err != nil {
			t.Fatal(err)
		}
		defer junk.Close()
		block := make([]byte, 4096)
		for err == nil {
			_, err = junk.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk = %v, want ENOSPC", err)
		}
		if free, err := FreeBytes(dir); err != nil || free != 0 {
			t.Errorf("FreeBytes = %d, %v on the full disk", free, err)
		}
		for off := int64(0); off < size; off += int64(len(block)) {
			if _, err := reserve.WriteAt(block, off); err != nil {
				t.Fatalf("writing reserved room at %d: %v", off, err)
			}
		}
	})
}

func TestLockOnAFullDisk(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "lock")
		for round := range 2 { // first with a file that has no content yet, then with one that has
			if round == 1 {
				lock, err := Lock(path)
				if err != nil {
					t.Fatal(err)
				}
				lock.Unlock()
			} else if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			junk := filepath.Join(dir, "junk")
			if err := os.WriteFile(junk, make([]byte, 2*smallDiskBytes), 0o600); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("filling the disk = %v, want ENOSPC", err)
			}
			lock, err := Lock(path)
			if err != nil {
				t.Fatalf("Lock on a full disk: %v", err)
			}
			lock.Unlock()
			if err := os.Remove(junk); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestFreeBytesOfASmallDisk(t *testing.T) {
	onSmallDisk(t, func(t *testing.T, dir string) {
		before, err := FreeBytes(dir)
		if err != nil || before == 0 || before > smallDiskBytes {
			t.Fatalf("FreeBytes = %d, %v, want up to %d", before, err, smallDiskBytes)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 128<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		if after, err := FreeBytes(dir); err != nil || before-after != 128<<10 {
			t.Errorf("FreeBytes fell by %d, %v, want %d", before-after, err, 128<<10)
		}
	})
}
