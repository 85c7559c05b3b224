package disk

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// LockedError means that another process holds the lock.
type LockedError struct {
	Path string // of the lock file
	PID  int    // of the holder, as it wrote it down; 0 where it is not known
}

// Error names the holder, so that the operator knows which process to look at.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by the process with PID %d", e.Path, e.PID)
}

// FileLock is an exclusive lock that lasts until Unlock or the end of the process.
type FileLock struct {
	file *os.File
}

// pidWidth makes the content of a lock file always equally long: replacing it then needs no new block, and taking the
// lock works on a full disk too.
const pidWidth = 20

// lockTries bounds how often a lock file that vanished while it was being locked is opened anew.
const lockTries = 10

// Lock takes the lock that the file at path stands for and creates the file (mode 0600) where there is none. It does not
// wait: where somebody else has the lock, the error is a *LockedError. The file is left in place by Unlock, because
// removing it would let two others lock two different files of that name.
//
// The lock is advisory (flock): it keeps out those who ask for it. It belongs to the open file: a second Lock in the same
// process is refused as well.
func Lock(path string) (*FileLock, error) {
	for range lockTries {
		lock, err := tryLock(path)
		if lock != nil || err != nil {
			return lock, err
		}
	}
	return nil, fmt.Errorf("lock %s: the file is being replaced again and again", path)
}

// tryLock returns neither a lock nor an error where the file was replaced between opening and locking.
func tryLock(path string) (*FileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = retryInterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &LockedError{Path: path, PID: readPID(f)}
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	if !isStill(f, path) {
		return nil, f.Close()
	}
	writePID(f)
	return &FileLock{file: f}, nil
}

// Unlock gives the lock back. A nil lock, and one given back already, has nothing to give.
func (l *FileLock) Unlock() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// isStill tells whether path still leads to f.
func isStill(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// writePID notes the holder for whoever is refused. The lock holds without the note, so a full disk is no reason to fail.
func writePID(f *os.File) {
	note := fmt.Sprintf("%-*d\n", pidWidth, os.Getpid())
	if _, err := f.WriteAt([]byte(note), 0); err == nil {
		_ = f.Truncate(int64(len(note)))
	}
}

// readPID returns 0 where no holder is noted: it may have locked the file this very moment.
func readPID(f *os.File) int {
	note := make([]byte, pidWidth+1)
	n, _ := f.ReadAt(note, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(note[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
