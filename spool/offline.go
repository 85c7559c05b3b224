package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	bolt "go.etcd.io/bbolt"
)

// lockExisting takes a spool's directory for work while no process uses it.
func lockExisting(path string) (d *directory, unlock func(), err error) {
	d = &directory{path: path}
	info, err := os.Lstat(d.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%s has no spool: give the spool.dir of a Postern", path)
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, d.noRegularFile()
	}
	lock, err := d.lock(lockWait)
	if err != nil {
		return nil, nil, err
	}
	return d, func() { _ = lock.Unlock() }, nil
}

// openWhole opens a file for reading after it was looked through.
func (d *directory) openWhole() (*bolt.DB, error) {
	fault, err := d.inspect(context.Background())
	if err != nil {
		return nil, err
	}
	if fault != nil {
		return nil, fmt.Errorf("%s is damaged (%w): run postern spool salvage", d.file(), fault)
	}
	info, err := os.Stat(d.file())
	if err != nil {
		return nil, err
	}
	opts := boltOptions(0, info.Size())
	opts.ReadOnly = true
	var db *bolt.DB
	err = guarded(func() (err error) {
		db, err = bolt.Open(d.file(), 0o600, opts)
		return err
	})
	if err != nil {
		return nil, openError(d, err)
	}
	st := &store{path: d.file(), cur: &generation{db: db, idle: make(chan struct{})}}
	if err := st.checkFormat(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Compact copies a spool into a file without free pages and puts it in place. progress, which may be nil, is told how
// many bytes of about how many are copied. The result is the file's size before and after. No process may have the
// directory open.
func Compact(dir string, progress func(done, total int64)) (before, after int64, err error) {
	d, unlock, err := lockExisting(dir)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	from, err := d.openWhole()
	if err != nil {
		return 0, 0, err
	}
	defer from.Close()
	if err := d.remove(compactName); err != nil {
		return 0, 0, err
	}
	if before, err = sizeOf(d.file()); err != nil {
		return 0, 0, err
	}
	if err := d.compactInto(from, progress); err != nil {
		return 0, 0, errors.Join(err, d.remove(compactName))
	}
	after, err = sizeOf(d.file())
	return before, after, err
}

func (d *directory) compactInto(from *bolt.DB, progress func(done, total int64)) error {
	to, err := createCopy(d.join(compactName), 0)
	if err != nil {
		return err
	}
	err = guarded(func() error {
		return from.View(func(tx *bolt.Tx) error {
			var done int64
			return copySpool(tx, &bulkWriter{db: to}, func(n int64) error {
				if done += n; progress != nil {
					progress(min(done, tx.Size()), tx.Size())
				}
				return nil
			})
		})
	})
	if err == nil {
		to.NoFreelistSync = false
		err = to.Update(func(tx *bolt.Tx) error { return errors.Join(notStale(tx), touch(tx)) })
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if err := d.unmarkClean(); err != nil {
		return err
	}
	if err := os.Rename(d.join(compactName), d.file()); err != nil {
		return err
	}
	return d.markClean()
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
