package spool

import (
	"errors"
	"fmt"
	"path/filepath"

	"postern/spool/internal/disk"
)

// afterFailure finds out whether the failed commit is visible, and if so tries to get it onto the disk.
func (st *store) afterFailure(id int, cause error) error {
	visible, err := st.visibleID()
	if err != nil {
		return errors.Join(cause, err)
	}
	if visible != id {
		return &commitError{err: cause}
	}
	// bbolt has given the pages that this commit freed to the next one; the state on disk may still need them. So
	// nothing is written before the visible state is known to be the one on disk.
	st.unsettled = true
	if st.settle() == nil {
		return nil
	}
	return &commitError{err: cause, visible: true}
}

func (st *store) visibleID() (int, error) {
	tx, err := st.cur.db.Begin(false)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	return tx.ID(), nil
}

// settle ends the doubt after a failed last sync: it writes the visible meta page once more and syncs. Readers that
// began before are waited for, since bbolt no longer keeps their pages for them.
func (st *store) settle() error {
	if st.renamed {
		// After a crash the directory might lead to the file of before, without what is committed now.
		if err := disk.SyncDir(filepath.Dir(st.path)); err != nil {
			return &commitError{err: err}
		}
		st.renamed = false
	}
	if !st.unsettled {
		return nil
	}
	if err := st.sync(); err != nil {
		return &commitError{err: err}
	}
	<-st.turn(&generation{db: st.cur.db, idle: make(chan struct{})})
	st.unsettled = false
	return nil
}

// syncMeta writes the current meta page in its place once more and syncs the file. It serves as a probe of the disk too.
func (st *store) syncMeta() error {
	id, err := st.visibleID()
	if err != nil {
		return err
	}
	page := make([]byte, st.pageSize())
	off := int64(id%2) * int64(st.pageSize())
	if _, err := st.file.ReadAt(page, off); err != nil {
		return fmt.Errorf("read the meta page: %w", err)
	}
	if _, err := st.file.WriteAt(page, off); err != nil {
		return fmt.Errorf("write the meta page: %w", err)
	}
	return st.file.Sync()
}

func (st *store) pageSize() int { return st.cur.db.Info().PageSize }
