package spool

import (
	"errors"
	"os"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"postern/spool/internal/disk"
)

// isNoSpace tells a full disk or file from a broken one.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, berrors.ErrMaxSizeReached)
}

// lacksRoom tells a commit that had no room and left no trace. One that is visible must not be tried again in pieces.
func lacksRoom(err error) bool { return isNoSpace(err) && !isVisible(err) }

// allocate gives the file blocks up to size.
func (st *store) allocate(size int64) error {
	size = (size + pageSize - 1) / pageSize * pageSize
	if size <= st.allocated {
		return nil
	}
	if err := disk.Allocate(st.file, size); err != nil {
		return err
	}
	st.allocated = size
	return nil
}

// measure reads how much of the file is in use after a transaction.
func (st *store) measure() error {
	tx, err := st.cur.db.Begin(false)
	if err != nil {
		return err
	}
	highWater := tx.Size()
	_ = tx.Rollback()
	stats := st.cur.db.Stats()
	free := stats.FreePageN
	if stats.OpenTxN == 0 {
		// Nobody reads: what the last commit freed is there for the next one.
		free += stats.PendingPageN
	}
	st.space = space{highWater: highWater, free: int64(free) * int64(st.pageSize())}
	return nil
}

// fileSize is the present length of the file.
func fileSize(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
