package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const (
	// reserveStep is how much is reserved by one system call. On tmpfs a signal undoes the whole call: with steps there
	// is progress all the same.
	reserveStep = 64 << 20
	// zeroStep is how much is written at once where zeros have to do: enough for full speed, little enough to hold.
	zeroStep = 256 << 10
)

// Allocate makes sure that the first size bytes of f have blocks on disk, so that writing them cannot fail for want of
// room, and extends f to size where it is shorter. It never makes f shorter. After an error f has the length it had
// before. Nobody else may change the length of f meanwhile. The result is not synced.
//
// What was reserved by ext4 and XFS is marked as not yet written, and the first write to each part changes that mark: a sync
// has to wait for the filesystem's journal then, in whose line everybody else's changes are. So there the new part is
// filled with zeros at once, and on its way to the disk when this returns. That is safe as the other way to get
// blocks is: what lies beyond the present end is nobody's.
//
// Where the filesystem cannot reserve (some network and stacked filesystems), the part beyond the present end is filled
// with zeros; holes before it stay holes. A filesystem that compresses or writes in new places only (ZFS, Btrfs) may
// still run out of room later.
func Allocate(f *os.File, size int64) error {
	return allocator{reserve: fallocate, marks: marksUnwritten}.allocate(f, size)
}

// allocator is Allocate with its system calls open to replacement.
type allocator struct {
	reserve func(f *os.File, off, n int64) error
	marks   func(f *os.File) bool // tells filesystems that mark reserved blocks as unwritten
}

func (a allocator) allocate(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("allocate: %w", err)
	}
	before := info.Size()
	err = a.reserveAll(f, size)
	if err == nil && size > before && a.marks(f) {
		err = fill(f, before, size)
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		err = writeZeros(f, before, size)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("allocate %d bytes: %w", size, err), giveBack(f, before))
	}
	return nil
}

func (a allocator) reserveAll(f *os.File, size int64) error {
	for off := int64(0); off < size; off += reserveStep {
		if err := a.reserve(f, off, min(reserveStep, size-off)); err != nil {
			return err
		}
	}
	return nil
}

// fill writes what was reserved a first time.
func fill(f *os.File, from, to int64) error {
	if err := writeZeros(f, from, to); err != nil {
		return err
	}
	startWriting(f, from, to-from)
	return nil
}

// zeros is never written to.
var zeros [zeroStep]byte

func writeZeros(f *os.File, from, to int64) error {
	for off := from; off < to; {
		n, err := f.WriteAt(zeros[:min(zeroStep, to-off)], off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// giveBack returns what a failed call had taken already: room that nobody knows of helps nobody.
func giveBack(f *os.File, before int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() <= before {
		return err
	}
	return f.Truncate(before)
}
