package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// A copy is written without syncs: it counts only once it is complete and synced as a whole.

// createCopy makes an empty spool file. What an earlier copy left at that place is removed: its rows would come back to
// life among those of this one.
func createCopy(path string, maxSize int64) (*bolt.DB, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove what an earlier copy left: %w", err)
	}
	opts := boltOptions(maxSize, 0)
	opts.NoSync = true
	opts.OpenFile = func(name string, flag int, perm os.FileMode) (*os.File, error) {
		return os.OpenFile(name, flag|os.O_EXCL, perm)
	}
	db, err := bolt.Open(path, 0o600, opts)
	if err != nil {
		return nil, fmt.Errorf("create a copy: %w", err)
	}
	db.AllocSize = pageSize
	err = db.Update(func(tx *bolt.Tx) error {
		for b := range layout.NumBuckets {
			if _, err := tx.CreateBucketIfNotExists(b.Name()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a copy: %w", err), db.Close())
	}
	return db, nil
}

// notStale takes back that a copy is wanted: this is it.
func notStale(tx *bolt.Tx) error { return tx.Bucket(layout.Meta.Name()).Delete(layout.KeyStale) }

// copySpool copies every row; progress is told the bytes copied and ends the copy with its error.
func copySpool(from *bolt.Tx, w *bulkWriter, progress func(bytes int64) error) error {
	for id := range layout.NumBuckets {
		err := from.Bucket(id.Name()).ForEach(func(k, v []byte) error {
			if err := w.put(id, k, v); err != nil {
				return err
			}
			return progress(rowBytes(k, v))
		})
		if err != nil {
			return errors.Join(fmt.Errorf("copy %s: %w", id, err), w.close())
		}
	}
	return w.close()
}

// bulkWriter writes many rows in transactions of a bounded size.
type bulkWriter struct {
	db    *bolt.DB
	tx    *bolt.Tx
	rows  int
	bytes int
	begun time.Time
	// mostRows and mostBytes bound a transaction; 0: bulkRows and bulkBytes.
	mostRows, mostBytes int
	// committed, where not nil, is told after each transaction how long it took.
	committed func(took time.Duration) error
}

const (
	bulkRows  = 5000
	bulkBytes = 4 * mib
)

func (w *bulkWriter) bucket(id layout.Bucket) (*bolt.Bucket, error) {
	if w.rows >= cmp.Or(w.mostRows, bulkRows) || w.bytes >= cmp.Or(w.mostBytes, bulkBytes) {
		if err := w.close(); err != nil {
			return nil, err
		}
	}
	if w.tx == nil {
		tx, err := w.db.Begin(true)
		if err != nil {
			return nil, err
		}
		w.tx, w.begun = tx, time.Now()
	}
	b := w.tx.Bucket(id.Name())
	if f := fillPercent[id]; f > 0 {
		b.FillPercent = f
	}
	return b, nil
}

// put writes a row. key and value must stay as they are until close.
func (w *bulkWriter) put(id layout.Bucket, key, value []byte) error {
	b, err := w.bucket(id)
	if err != nil {
		return err
	}
	w.rows++
	w.bytes += len(key) + len(value)
	return b.Put(key, value)
}

func (w *bulkWriter) del(id layout.Bucket, key []byte) error {
	b, err := w.bucket(id)
	if err != nil {
		return err
	}
	w.rows++
	return b.Delete(key)
}

// get reads a row as it is with everything written so far.
func (w *bulkWriter) get(id layout.Bucket, key []byte) ([]byte, error) {
	b, err := w.bucket(id)
	if err != nil {
		return nil, err
	}
	return b.Get(key), nil
}

// close commits what is open. The writer can be used on.
func (w *bulkWriter) close() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx, w.rows, w.bytes = nil, 0, 0
	if err := tx.Commit(); err != nil || w.committed == nil {
		return err
	}
	return w.committed(time.Since(w.begun))
}
