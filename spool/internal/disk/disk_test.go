package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := SyncDir(dir); err != nil {
		t.Errorf("SyncDir: %v", err)
	}
	if err := SyncDir(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("SyncDir of nothing = %v, want ErrNotExist", err)
	}
}

func TestFreeBytes(t *testing.T) {
	dir := t.TempDir()
	if free, err := FreeBytes(dir); err != nil || free == 0 {
		t.Errorf("FreeBytes = %d, %v", free, err)
	}
	if _, err := FreeBytes(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("FreeBytes of nothing = %v, want ErrNotExist", err)
	}
}

func TestRetryInterrupted(t *testing.T) {
	calls := 0
	err := retryInterrupted(func() error {
		calls++
		if calls < 3 {
			return syscall.EINTR
		}
		return syscall.EIO
	})
	if calls != 3 || !errors.Is(err, syscall.EIO) {
		t.Errorf("%d calls, %v; want 3 and EIO", calls, err)
	}
}
