package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"postern/spool/internal/disk"
)

// The files of a spool's directory.
const (
	dbName      = "spool.db"
	lockName    = "postern.lock"
	cleanName   = "spool.clean"   // after a clean close: which state of the file that was; else zeros. See noteSeq for the rest
	damagedName = "spool.damaged" // present when bbolt met damage while it ran
	compactName = "spool.db.compact"
	salvageName = "spool.db.salvage"
	probeName   = "spool.probe" // made and removed at an opening
	keptSuffix  = ".corrupt-"   // and the time, behind the name of a damaged file that is kept
)

// directory is the place where a spool lives.
type directory struct {
	path string
}

func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("the spool's directory cannot be made: %w: make %s for the user that Postern runs as, or choose "+
			"another spool.dir", err, path)
	}
	return &directory{path: path}, nil
}

func (d *directory) join(name string) string { return filepath.Join(d.path, name) }
func (d *directory) file() string            { return d.join(dbName) }

// lockPoll is how often a lock that is held is tried again.
const lockPoll = 50 * time.Millisecond

// lock takes the directory for this process.
func (d *directory) lock(wait time.Duration) (*disk.FileLock, error) {
	deadline := time.Now().Add(wait)
	for {
		lock, err := disk.Lock(d.join(lockName))
		held := new(disk.LockedError)
		switch {
		case err == nil:
			return lock, nil
		case errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("the spool cannot be opened: %w: let the user that Postern runs as own %s", err, d.path)
		case !errors.As(err, &held):
			return nil, fmt.Errorf("lock the spool: %w", err)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%w: %w: stop it, or give this one another spool.dir", ErrInUse, held)
		}
		time.Sleep(lockPoll)
	}
}

// stamp identifies the state of a file without reading it: whoever writes to the file changes it.
func (d *directory) stamp() ([]byte, error) {
	info, err := os.Stat(d.file())
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(info.Size()))
	return binary.BigEndian.AppendUint64(b, uint64(info.ModTime().UnixNano())), nil
}

// cleanlyClosed tells whether the file is still as the last clean close left it.
func (d *directory) cleanlyClosed() bool {
	mark, err := os.ReadFile(d.join(cleanName))
	if err != nil {
		return false
	}
	stamp, err := d.stamp()
	return err == nil && len(mark) >= len(stamp) && string(mark[:len(stamp)]) == string(stamp)
}

// markClean notes that the file needs no looking through. Nobody may write to it any more.
func (d *directory) markClean() error {
	stamp, err := d.stamp()
	if err != nil {
		return err
	}
	return d.writeMark(cleanName, stamp)
}

// unmarkClean overwrites the mark in its place, so that setting it again takes no room on a full disk.
func (d *directory) unmarkClean() error { return d.writeMark(cleanName, make([]byte, notedAt)) }

func (d *directory) markDamaged() error { return d.writeMark(damagedName, []byte{'\n'}) }

func (d *directory) writeMark(name string, content []byte) error {
	f, err := os.OpenFile(d.join(name), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return disk.SyncDir(d.path)
}

// refuses tells why nothing can be made or marked in the directory. Want of room is no reason: it may come.
func (d *directory) refuses() error {
	for name, flags := range map[string]int{cleanName: os.O_WRONLY, probeName: os.O_WRONLY | os.O_CREATE} {
		f, err := os.OpenFile(d.join(name), flags, 0o600)
		switch {
		case err == nil:
			if err := f.Close(); err != nil {
				return err
			}
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("the spool cannot be written: %w: let the user that Postern runs as own %s and all that is in it", err, d.path)
		case errors.Is(err, syscall.EROFS):
			return fmt.Errorf("the spool cannot be written: %w: make its file system writable, or choose another spool.dir", err)
		}
	}
	if err := os.Remove(d.join(probeName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remove deletes files that may be there and makes that last.
func (d *directory) remove(names ...string) error {
	removed := false
	for _, name := range names {
		err := os.Remove(d.join(name))
		switch {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if !removed {
		return nil
	}
	return disk.SyncDir(d.path)
}
