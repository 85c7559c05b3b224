package spool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
	w := c.pieces()
	if err := copySpool(from, &w, func(int64) error { return c.stopped() }); err != nil {
		return err
	}
	return c.db.Sync()
}

// pieces writes in pieces so small that a commit which comes meanwhile waits for no more than about its own time.
func (c *compactor) pieces() bulkWriter {
	return bulkWriter{db: c.db, mostRows: pieceRows, mostBytes: pieceBytes, committed: c.rest}
}

// rest keeps the copy from taking the disk and the processors from the commits that go on beside it: a piece is flushed at
// once, instead of everything at the end, and then several times as long passes as the piece took; where so much changes
// meanwhile that the copy may not keep up, only once as long.
func (c *compactor) rest(took time.Duration) error {
	start := time.Now()
	if err := c.db.Sync(); err != nil {
		return err
	}
	pause := took + time.Since(start)
	if c.noted.Load() < maxChangedKeys/4*3 {
		pause *= restTimes
	}
	rest := time.NewTimer(min(pause, maxRest))
	defer rest.Stop()
	select {
	case <-c.halted:
		return errStopped
	case <-rest.C:
		return nil
	}
}

// copyBeside copies single rows while work goes on. Where they are many the work goes on faster than a copy that rests.
func (c *compactor) copyBeside(from *bolt.Tx, keys map[rowKey]struct{}) error {
	if len(keys) > restlessKeys {
		return c.copyKeys(from, keys, bulkWriter{db: c.db})
	}
	return c.copyKeys(from, keys, c.pieces())
}

// copyKeys copies the present state of single rows, in the order of their keys: neighbours share a page.
func (c *compactor) copyKeys(from *bolt.Tx, keys map[rowKey]struct{}, w bulkWriter) error {
	for _, rk := range slices.SortedFunc(maps.Keys(keys), rowKey.compare) {
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
