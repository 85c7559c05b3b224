package spool

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// pageSize was chosen by measuring; DESIGN.md has the numbers.
const pageSize = 8192

// errDamaged means that bbolt met something in the file that cannot be. Nothing is written any more; the next open
// salvages.
var errDamaged = errors.New("the spool's file is damaged: restart Postern, which salvages what can be read")

// commitError is a commit that failed. Visible tells that readers see its effects all the same, since only the last
// sync failed: whether they survive a power cut is open until a later sync succeeds.
type commitError struct {
	err     error
	visible bool
}

func (e *commitError) Error() string { return "commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

func isVisible(err error) bool {
	var ce *commitError
	return errors.As(err, &ce) && ce.visible
}

// generation is one open database and those who read in it. A new one begins when the file is exchanged.
type generation struct {
	db      *bolt.DB
	readers int
	idle    chan struct{} // closed when the generation is past and the last reader has left
	past    bool
}

// store is the bbolt file: transactions that neither panic nor leave the process in doubt about the disk. Only the
// committer writes; anybody reads.
type store struct {
	path    string
	maxSize int64

	mu  sync.Mutex // guards cur, its readers and past
	cur *generation

	// The rest belongs to the committer.
	file      *os.File       // a second handle on the same file, for what bbolt does not offer
	allocated int64          // bytes of file that have blocks on disk
	unsettled bool           // the visible state is not known to be on disk
	renamed   bool           // the file was exchanged, and the directory is not known to say so
	closing   sync.WaitGroup // past files that wait for their readers
	space     space

	rescan   *rescan
	damaged  atomic.Bool
	onDamage func(cause any)
	// commit is tx.Commit and sync is syncMeta; tests let them fail.
	commit func(*bolt.Tx) error
	sync   func() error
}

func boltOptions(maxSize, fileSize int64) *bolt.Options {
	return &bolt.Options{
		Timeout:        lockWait,
		NoFreelistSync: true, // a big freelist would be written with every commit
		FreelistType:   bolt.FreelistMapType,
		// Growing the map waits for readers and moves it under them: reserve the addresses at once.
		InitialMmapSize: int(max(maxSize, fileSize)),
		MaxSize:         int(maxSize),
		PageSize:        pageSize,
		NoGrowSync:      true, // the file is lengthened ahead, by ensureAllocated
	}
}

// openStore opens the file, which must not be damaged: bbolt panics in goroutines of its own otherwise.
func openStore(path string, maxSize int64) (*store, error) {
	st := &store{path: path, maxSize: maxSize, onDamage: func(any) {}}
	st.rescan = &rescan{check: st.verify}
	st.commit = func(tx *bolt.Tx) error { return tx.Commit() }
	st.sync = st.syncMeta
	gen, file, err := st.openGeneration(path)
	if err != nil {
		return nil, err
	}
	st.cur, st.file = gen, file
	return st, nil
}

func (st *store) openGeneration(path string) (gen *generation, file *os.File, err error) {
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	var db *bolt.DB
	err = guarded(func() (err error) {
		opts := boltOptions(st.maxSize, info.Size())
		opts.Logger = st.rescan
		db, err = bolt.Open(path, 0o600, opts)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	db.AllocSize = pageSize
	return &generation{db: db, idle: make(chan struct{})}, file, nil
}

// guarded runs fn and turns a panic or a fault on the mapped file into an error that wraps errDamaged.
func guarded(fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w (%v)", errDamaged, cause)
		}
	}()
	return fn()
}

func (st *store) acquire() *generation {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.cur.readers++
	return st.cur
}

func (st *store) release(g *generation) {
	st.mu.Lock()
	defer st.mu.Unlock()
	g.readers--
	if g.past && g.readers == 0 {
		close(g.idle)
	}
}

// turn makes next the current generation and returns a channel that closes when the readers of the last one are gone.
func (st *store) turn(next *generation) <-chan struct{} {
	st.mu.Lock()
	defer st.mu.Unlock()
	last := st.cur
	last.past = true
	if last.readers == 0 {
		close(last.idle)
	}
	st.cur = next
	return last.idle
}

// begin starts a read transaction; end must be called once. Transactions are short: a long one keeps pages from reuse.
func (st *store) begin() (tx *bolt.Tx, end func(), err error) {
	if st.damaged.Load() {
		return nil, nil, errDamaged
	}
	g := st.acquire()
	err = st.guard(func() (err error) {
		tx, err = g.db.Begin(false)
		return err
	})
	if err != nil {
		st.release(g)
		return nil, nil, err
	}
	return tx, func() { _ = tx.Rollback(); st.release(g) }, nil
}

// view runs fn in a read transaction.
func (st *store) view(fn func(tx *bolt.Tx) error) error {
	tx, end, err := st.begin()
	if err != nil {
		return err
	}
	defer end()
	return st.guard(func() error { return fn(tx) })
}

// guard is guarded, and remembers the damage.
func (st *store) guard(fn func() error) error {
	err := guarded(fn)
	if errors.Is(err, errDamaged) && st.damaged.CompareAndSwap(false, true) {
		st.onDamage(err)
	}
	return err
}

// update runs fn in the write transaction and commits. The error is fn's own, or a *commitError; after either nothing
// is changed, unless the commitError says visible.
func (st *store) update(fn func(tx *bolt.Tx) error) error {
	if st.damaged.Load() {
		return errDamaged
	}
	if err := st.settle(); err != nil {
		return err
	}
	// No defer rolls back after a panic: that would read the damaged file once more, in a goroutine that nobody guards.
	return st.guard(func() error {
		tx, err := st.cur.db.Begin(true)
		if err != nil {
			return err
		}
		id := tx.ID()
		if err := fn(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		st.rescan.armed.Store(true)
		err = st.commit(tx)
		st.rescan.armed.Store(false)
		if err != nil {
			return st.afterFailure(id, err)
		}
		return nil
	})
}

// close ends the store. Clean makes the next open fast: the freelist is written, so that nothing has to be scanned.
func (st *store) close(clean bool) error {
	<-st.turn(&generation{db: st.cur.db, idle: make(chan struct{})})
	st.closing.Wait()
	if st.damaged.Load() {
		// bbolt's locks may be held by what panicked: leave it to the end of the process.
		return st.file.Close()
	}
	var err error
	if clean && !st.unsettled {
		st.cur.db.NoFreelistSync = false
		err = st.update(func(tx *bolt.Tx) error { return touch(tx) })
	}
	return errors.Join(err, st.cur.db.Close(), st.file.Close())
}

// touch makes a transaction write something, so that its commit writes the freelist.
func touch(tx *bolt.Tx) error {
	b := tx.Bucket(layout.Meta.Name())
	return b.Put(layout.KeyFormat, []byte{layout.Format})
}
