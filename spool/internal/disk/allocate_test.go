package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func tempFile(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

func sizeOf(t *testing.T, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func unsupported(*os.File, int64, int64) error { return syscall.EOPNOTSUPP }

func TestAllocate(t *testing.T) {
	content := []byte(strings.Repeat("postern", 1000))
	ways := map[string]allocator{
		"by the system": {reserve: fallocate},
		"by zeros":      {reserve: unsupported},
		"without the call": {reserve: func(*os.File, int64, int64) error {
			return syscall.ENOSYS
		}},
	}
	sizes := map[string]int64{"nothing": 0, "shorter": 100, "equal": 7000, "longer": 7001, "much longer": zeroStep*2 + 12345}
	for way, a := range ways {
		for name, size := range sizes {
			t.Run(way+"/"+name, func(t *testing.T) {
				f := tempFile(t, content)
				if err := a.allocate(f, size); err != nil {
					t.Fatal(err)
				}
				want := max(size, int64(len(content)))
				if got := sizeOf(t, f); got != want {
					t.Fatalf("size %d, want %d", got, want)
				}
				got, err := os.ReadFile(f.Name())
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got[:len(content)], content) || len(bytes.Trim(got[len(content):], "\x00")) > 0 {
					t.Error("the content changed")
				}
			})
		}
	}
}

func TestAllocateTakesBlocks(t *testing.T) {
	const size = 1 << 20
	for way, a := range map[string]allocator{"by the system": {fallocate}, "by zeros": {unsupported}} {
		t.Run(way, func(t *testing.T) {
			f := tempFile(t, nil)
			if err := a.allocate(f, size); err != nil {
				t.Fatal(err)
			}
			if err := f.Sync(); err != nil { // some filesystems count blocks only when they are written out
				t.Fatal(err)
			}
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil {
				t.Fatal(err)
			}
			if got := st.Blocks * 512; got < size {
				t.Errorf("%d bytes of blocks, want %d", got, size)
			}
		})
	}
}

func TestAllocateGivesBackAfterFailure(t *testing.T) {
	grow := func(f *os.File, off, n int64) error {
		if off > 0 {
			return syscall.ENOSPC
		}
		return f.Truncate(max(off+n, sizeOf(t, f)))
	}
	f := tempFile(t, []byte("kept"))
	err := allocator{reserve: grow}.allocate(f, reserveStep*2)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("allocate = %v, want ENOSPC", err)
	}
	if got := sizeOf(t, f); got != 4 {
		t.Errorf("size %d after the failure, want the 4 of before", got)
	}
}

func TestAllocateOfAClosedFile(t *testing.T) {
	f := tempFile(t, nil)
	f.Close()
	if err := Allocate(f, 1); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Allocate = %v, want ErrClosed", err)
	}
}
