//go:build unix && !linux

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fallocate is left to the writing of zeros.
func fallocate(*os.File, int64, int64) error { return syscall.ENOTSUP }

// fragmentSize is the unit of the block counts.
func fragmentSize(st *unix.Statfs_t) uint64 { return uint64(st.Bsize) }
