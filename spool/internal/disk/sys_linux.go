package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// fallocate reserves blocks for n bytes at off and extends the file where they lie beyond its end.
func fallocate(f *os.File, off, n int64) error {
	return retryInterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, off, n) })
}

// fragmentSize is the unit of the block counts. FUSE filesystems report a larger preferred size in Bsize.
func fragmentSize(st *unix.Statfs_t) uint64 {
	if st.Frsize > 0 {
		return uint64(st.Frsize)
	}
	return uint64(st.Bsize)
}
