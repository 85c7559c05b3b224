// Package disk holds the few things that the spool asks of the operating system beyond plain files: a lock that two
// processes cannot hold at once, room that is really there, a directory entry that survives a power cut, and the number
// of bytes still free.
//
// It promises that a failure for want of room is recognisable with errors.Is(err, syscall.ENOSPC), that no call makes a
// file shorter than it was, and that the lock ends with the process, however the process ends.
//
// It leaves out everything that knows what is in the files. It is written for Linux; on other Unix systems it works with
// what they have: room is taken by writing zeros, which costs time but promises the same.
package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SyncDir flushes a directory, so that files just created, renamed or removed in it are still so after a power cut.
// Filesystems that cannot sync a directory (they answer EINVAL or ENOTSUP) order such changes themselves or not at all;
// there is nothing to be done about it, so that is no error.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open directory to sync it: %w", err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// FreeBytes returns how many bytes this process may still write to the filesystem that path is on. What is reserved for
// the superuser is not counted, and neither is a quota.
func FreeBytes(path string) (uint64, error) {
	var st unix.Statfs_t
	err := retryInterrupted(func() error { return unix.Statfs(path, &st) })
	if err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return uint64(st.Bavail) * fragmentSize(&st), nil
}

// retryInterrupted repeats a system call that a signal cut short.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
