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

func always(*os.File) bool { return true }
func never(*os.File) bool  { return false }

func TestAllocate(t *testing.T) {
	content := []byte(strings.Repeat("postern", 1000))
	ways := map[string]allocator{
		"by the system": {reserve: fallocate, marks: never},
		"both ways":     {reserve: fallocate, marks: always},
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
				got := readFile(t, f)
				if !bytes.Equal(got[:len(content)], content) || len(bytes.Trim(got[len(content):], "\x00")) > 0 {
					t.Error("the content changed")
				}
			})
		}
	}
}

func TestAllocateTakesBlocks(t *testing.T) {
	const size = 1 << 20
	for way, a := range map[string]allocator{"by the system": {fallocate, never}, "both ways": {fallocate, always}, "by zeros": {unsupported, nil}} {
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

// What a commit writes must not change the filesystem's own records: the first write to a block that was only reserved does.
func TestNewBlocksAreWritten(t *testing.T) {
	const from, size = 8192, 1 << 20
	f := tempFile(t, bytes.Repeat([]byte{1}, from))
	if err := (allocator{fallocate, always}).allocate(f, size); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	// To a seek for data, reserved blocks are a hole.
	for off := int64(from); off < size; off += 4096 {
		if at, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA); err != nil || at != off {
			t.Fatalf("from %d on the next data is at %d: %v", off, at, err)
		}
	}
	if !bytes.Equal(readFile(t, f)[:from], bytes.Repeat([]byte{1}, from)) {
		t.Error("what was there has changed")
	}
}

func readFile(t *testing.T, f *os.File) []byte {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
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
