package spool

import (
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// errStopped ends a round that is no longer wanted.
var errStopped = errors.New("stopped")

// halt ends the copy soon. It may be called more than once.
func (c *compactor) halt() { c.once.Do(func() { close(c.halted) }) }

func (c *compactor) stopped() error {
	select {
	case <-c.halted:
		return errStopped
	default:
		return nil
	}
}

// copyAll is the first round.
func (c *compactor) copyAll(from *bolt.Tx) (err error) {
	if c.db, err = createCopy(c.path, c.maxSize); err != nil {
		return err
	}
	c.db.MaxSize = int(c.budget)
	w := bulkWriter{db: c.db, committed: c.rest}
	if err := copySpool(from, &w, func(int64) error { return c.stopped() }); err != nil {
		return err
	}
	return c.db.Sync()
}

// rest keeps the copy from taking the disk from the commits that go on beside it: a piece is flushed at once, instead of
// everything at the end, and then as much time passes as the piece took.
func (c *compactor) rest(took time.Duration) error {
	start := time.Now()
	if err := c.db.Sync(); err != nil {
		return err
	}
	rest := time.NewTimer(min(took+time.Since(start), maxRest))
	defer rest.Stop()
	select {
	case <-c.halted:
		return errStopped
	case <-rest.C:
		return nil
	}
}

// copyKeys copies the present state of single rows.
func (c *compactor) copyKeys(from *bolt.Tx, keys map[rowKey]struct{}) error {
	w := bulkWriter{db: c.db}
	for rk := range keys {
		if err := c.stopped(); err != nil {
			return errors.Join(err, w.close())
		}
		value := from.Bucket(rk.bucket.Name()).Get([]byte(rk.key))
		var err error
		if value == nil {
			err = w.del(rk.bucket, []byte(rk.key))
		} else {
			err = w.put(rk.bucket, []byte(rk.key), value)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("copy a row of %s: %w", rk.bucket, err), w.close())
		}
	}
	return w.close()
}
