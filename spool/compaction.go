package spool

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"postern/spool/internal/disk"
	"postern/spool/internal/layout"
)

// bbolt never makes its file shorter. So a file that is mostly free pages is copied while work goes on: a goroutine
// copies a snapshot, the committer notes the keys that change meanwhile, they are copied too, round after round until
// few are left, and the last few and the exchange of the files are all that the committer stops for.

const (
	// compactMin is the size below which a file is not worth the trouble; compactMinQuiet holds once nothing is written.
	compactMin      = 16 * mib
	compactMinQuiet = 4 * mib
	// compactQuiet is how long nothing must have been written for a file to be copied for the sake of a fifth.
	compactQuiet = 2 * time.Second
	// compactAgain is the wait after a copy that failed.
	compactAgain = time.Minute
	// lastRoundKeys is how few keys must be left for the committer to stop.
	lastRoundKeys = 2000
	// pieceRows and pieceBytes bound a piece of a copy beside the work, which is flushed at once. With five times as many, one
	// lone commit in fifty took four times as long as without a copy.
	pieceRows  = 1000
	pieceBytes = 512 << 10
	// restlessKeys is how many changed keys are copied without a rest, since so many come of a load that a copy has to outrun.
	restlessKeys = 40_000
	// restTimes is how many times as long as a piece took passes before the next one. With 1 the 99th percentile of a lone
	// client's acknowledgements was 2.0 to 2.5 times what it is without a copy, with 8 it is 1.4 to 1.8 times.
	restTimes = 8
	// maxRest bounds the rest after each piece of a copy: a slow disk must not make it endless.
	maxRest = 100 * time.Millisecond
	// maxChangedKeys bounds the memory of a copy that cannot keep up.
	maxChangedKeys = 500_000
)

// compaction is the committer's side of a copy in the making.
type compaction struct {
	ready     chan *compactor // a round has ended
	current   *compactor
	notBefore time.Time
	lastWrite time.Time
	forced    atomic.Bool // a copy is wanted whatever the size: free pages hold what is to be gone
	told      bool        // that there is no room for it yet
}

// compactor is the copy.
type compactor struct {
	path    string
	maxSize int64 // of the file that it becomes
	budget  int64 // of the copy, so that it and the present file together stay within maxSize
	db      *bolt.DB
	changed map[rowKey]struct{} // the committer's
	noted   atomic.Int64        // how many those are
	once    sync.Once
	halted  chan struct{} // closed by halt
	err     error         // of the last round
	stale   bool          // the committer's: another copy is wanted since this one began
}

func newCompactor(path string, maxSize, budget int64) *compactor {
	return &compactor{
		path: path, maxSize: maxSize, budget: budget,
		changed: make(map[rowKey]struct{}), halted: make(chan struct{}),
	}
}

// rowKey names one row.
type rowKey struct {
	bucket layout.Bucket
	key    string
}

func (k rowKey) compare(other rowKey) int {
	return cmp.Or(cmp.Compare(k.bucket, other.bucket), cmp.Compare(k.key, other.key))
}

// note is told of every row that a transaction touches. A row noted in vain is copied in vain.
func (c *compaction) note(id layout.Bucket, key []byte) {
	if c.current == nil {
		return
	}
	if len(c.current.changed) >= maxChangedKeys {
		c.current.halt()
		return
	}
	c.current.changed[rowKey{id, string(key)}] = struct{}{}
	c.current.noted.Store(int64(len(c.current.changed)))
}

// consider starts a copy if the file is worth it.
func (s *Spool) considerCompaction(now time.Time) {
	c := &s.compaction
	if c.current != nil || now.Before(c.notBefore) || s.store.unsettled || s.store.damaged.Load() {
		return
	}
	file, used := s.store.allocated, s.store.space.used()
	room := used + s.room.reserve // about what the copy will have
	least, most := int64(compactMin), file/3
	if now.Sub(c.lastWrite) >= compactQuiet {
		// A copy that was made while a backlog drained still has the holes of the rest: nobody is in the way of another.
		least, most = compactMinQuiet, file/5*4
	}
	// Where max_bytes was lowered below the file, only a copy beside it brings the file back, whatever the two take together.
	bound := s.cfg.MaxBytes
	if file > bound {
		least, most, bound = 0, s.cfg.MaxBytes, file+s.cfg.MaxBytes
	}
	forced := c.forced.Load()
	if !forced && (file < least || room > most) {
		return
	}
	if forced {
		file, room = s.makeWay(file, room)
	}
	free, err := disk.FreeBytes(s.dir.path)
	if file+room > bound || err == nil && free < uint64(2*room+maxReserve) {
		if forced {
			s.sayCopyWaits()
		}
		return
	}
	budget := min(room+room/2+bulkBytes, bound-file)
	c.current = newCompactor(s.dir.join(compactName), s.cfg.MaxBytes, budget)
	s.room.lent = budget
	s.round(c.current.copyAll)
}

// round runs one round of the copy beside the committer, on a snapshot of now.
func (s *Spool) round(copyRows func(from *bolt.Tx) error) {
	c := s.compaction.current
	from, end, err := s.store.begin()
	if err != nil {
		c.err = err
		s.compaction.ready <- c
		return
	}
	go func() {
		c.err = guarded(func() error { return copyRows(from) })
		end()
		s.compaction.ready <- c
	}()
}

// finishRound is the committer's part when a round has ended.
func (s *Spool) finishRound(c *compactor) {
	switch {
	case c.err != nil || c.stopped() != nil:
		s.dropCompaction(c.err)
	case len(c.changed) > lastRoundKeys:
		keys := c.changed
		c.changed = make(map[rowKey]struct{})
		s.round(func(from *bolt.Tx) error { return c.copyBeside(from, keys) })
	default:
		if err := s.exchange(c); err != nil {
			s.dropCompaction(err)
		}
	}
}

// exchange copies the last rows and puts the copy in the file's place. An error means that nothing was exchanged.
func (s *Spool) exchange(c *compactor) error {
	before := s.store.allocated
	err := s.store.view(func(from *bolt.Tx) error { return c.copyKeys(from, c.changed, bulkWriter{db: c.db}) })
	if err == nil && !c.stale {
		err = guarded(func() error { return c.db.Update(notStale) })
	}
	if err == nil {
		err = c.db.Sync()
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := os.Rename(c.path, s.store.path); err != nil {
		return errors.Join(err, file.Close())
	}
	s.compaction.current, s.room.lent = nil, 0
	s.copied(c)
	c.db.NoSync, c.db.AllocSize, c.db.MaxSize = false, pageSize, int(c.maxSize)
	s.store.replace(&generation{db: c.db, idle: make(chan struct{})}, file)
	s.settleExchange()
	s.cfg.Logger.Info("the spool's file was compacted", slog.Int64("before", before), slog.Int64("after", s.store.allocated))
	return nil
}

// settleExchange gives the new file its blocks. Whatever fails here is made up for by the next commit.
func (s *Spool) settleExchange() {
	if err := s.store.settle(); err != nil {
		s.fail(err)
	}
	if err := s.store.guard(s.store.measure); err != nil {
		return
	}
	size := fileSize(s.store.file)
	want := max(size, min(s.store.space.highWater+s.room.reserve, s.cfg.MaxBytes))
	if err := s.store.allocate(want); err != nil {
		s.store.allocated = size
	}
	s.noteSpace()
}

// replace makes another file the store's. The last one is closed when its readers have left it.
func (st *store) replace(next *generation, file *os.File) {
	lastDB, lastFile := st.cur.db, st.file
	idle := st.turn(next)
	st.file, st.allocated = file, 0
	st.renamed = true
	st.closing.Add(1)
	go func() {
		defer st.closing.Done()
		<-idle
		_ = guarded(lastDB.Close)
		_ = lastFile.Close()
	}()
}

// dropCompaction gives a copy up; the spool goes on with the file that it has.
func (s *Spool) dropCompaction(cause error) {
	c := s.compaction.current
	s.compaction.current, s.room.lent = nil, 0
	s.compaction.notBefore = time.Now().Add(compactAgain)
	if c.db != nil {
		_ = guarded(c.db.Close)
	}
	if errors.Is(cause, berrors.ErrMaxSizeReached) && s.compaction.forced.Load() {
		s.sayCopyWaits() // it took more than it seemed to
	}
	err := s.dir.remove(compactName)
	if cause != nil && !errors.Is(cause, errStopped) && !errors.Is(cause, berrors.ErrMaxSizeReached) {
		s.cfg.Logger.Warn("the spool's file could not be compacted; it is tried again later", slog.Any("error", cause))
	}
	if err != nil {
		s.cfg.Logger.Warn("a copy of the spool could not be removed", slog.Any("error", err))
	}
}

// stopCompaction ends a copy now, as before the spool closes, and tells whether there was one. The wait is for the piece
// that is being written.
func (s *Spool) stopCompaction() bool {
	c := s.compaction.current
	if c == nil {
		return false
	}
	c.halt()
	<-s.compaction.ready
	s.dropCompaction(errStopped)
	return true
}

// takeRoomBack ends a copy that is in the way: as long as it reads its snapshot no page that was freed since can be used.
// It tells whether there was one; then what found no room is worth a second try.
func (s *Spool) takeRoomBack() bool {
	if !s.stopCompaction() {
		return false
	}
	if err := s.store.guard(s.store.measure); err == nil {
		s.noteSpace()
	}
	return true
}

// watchCompaction ends a copy for which the reserve would be used up.
func (s *Spool) watchCompaction() {
	if c := s.compaction.current; c != nil && s.store.allocated-s.store.space.used() < s.room.reserve/2 {
		c.halt()
	}
}
