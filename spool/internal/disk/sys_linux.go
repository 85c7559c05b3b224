package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// fallocate reserves blocks for n bytes at off and extends the file where they lie beyond its end.
func fallocate(f *os.File, off, n int64) error {
	return retryInterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, off, n) })
}

// marksUnwritten tells whether blocks that fallocate reserves cost a change of the filesystem's own at their first write.
func marksUnwritten(f *os.File) bool {
	var st unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		return false
	}
	return st.Type == unix.EXT4_SUPER_MAGIC || st.Type == unix.XFS_SUPER_MAGIC
}

// startWriting has the system write n bytes at off, and does not wait. It is a hint: what fails here fails in the sync.
func startWriting(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

// fragmentSize is the unit of the block counts. FUSE filesystems report a larger preferred size in Bsize.
func fragmentSize(st *unix.Statfs_t) uint64 {
	if st.Frsize > 0 {
		return uint64(st.Frsize)
	}
	return uint64(st.Bsize)
}
