//go:build unix && !linux

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fallocate is left to the writing of zeros.
func fallocate(*os.File, int64, int64) error { return syscall.ENOTSUP }

// marksUnwritten is never asked: nothing is reserved.
func marksUnwritten(*os.File) bool { return false }

// startWriting leaves it to the sync.
func startWriting(*os.File, int64, int64) {}

// fragmentSize is the unit of the block counts.
func fragmentSize(st *unix.Statfs_t) uint64 { return uint64(st.Bsize) }
