package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"postern/spool/internal/disk"
	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// lockWait is how long Open waits for a directory that another process is just leaving.
const lockWait = 3 * time.Second

// Open opens the spool in cfg.Dir, which is made where there is none. One process can have it open. The error wraps
// ErrInUse, ErrNewerFormat or ErrNotSpool where that is the reason. A damaged file is no error: what can be read is
// salvaged into a new one, and one line in the log says what was lost.
func Open(cfg Config) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ring, err := keyring.New(cfg.Keys...)
	if err != nil {
		return nil, err // Validate has said it
	}
	s, err := openWith(cfg, ring)
	if err != nil {
		return nil, err
	}
	s.rekey()
	return s, nil
}

// openWith is Open with a ring instead of the configured keys, and rewrites nothing.
func openWith(cfg Config, ring *keyring.Ring) (*Spool, error) {
	cfg = cfg.withDefaults()
	dir, err := openDirectory(cfg.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := dir.lock(lockWait)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(cfg, dir, ring)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	s.lock = lock
	if err := s.redate(); err != nil {
		cfg.Logger.Warn("the clock was set back, and waiting events could not be brought forward: they wait for as long", slog.Any("error", err))
	}
	go s.run()
	return s, nil
}

func openLocked(cfg Config, dir *directory, ring *keyring.Ring) (*Spool, error) {
	if err := dir.prepare(cfg); err != nil {
		return nil, err
	}
	st, err := openComplete(dir.file(), cfg.MaxBytes)
	if cannotBe(err) {
		// The mark of a clean close vouched for the file, and the disk has given back something else; or the damage is one
		// that only the owner of the records can see.
		if err = errors.Join(dir.markDamaged(), dir.prepare(cfg)); err == nil {
			st, err = openComplete(dir.file(), cfg.MaxBytes)
		}
	}
	if err != nil {
		return nil, openError(dir, err)
	}
	s := &Spool{
		cfg: cfg, dir: dir, store: st, queue: newQueue(),
		leases:  leaseTable{held: make(map[uint64]heldLease)},
		rows:    make(map[string]*endpointRow),
		names:   make(map[uint32]string),
		closing: make(chan struct{}), stopped: make(chan struct{}), giveUp: make(chan struct{}),
		writable: true,
		sweep:    sweep{size: sweepDrops},
	}
	s.compaction.ready = make(chan *compactor, 1)
	s.keys.ring.Store(ring)
	st.onDamage = s.damaged
	if err := s.start(); err != nil {
		return nil, errors.Join(err, st.abandon())
	}
	return s, nil
}

// start makes the store ready for use: buckets, state in memory, room.
func (s *Spool) start() error {
	if err := s.store.checkFormat(); err != nil {
		return err
	}
	info, err := s.store.file.Stat()
	if err != nil {
		return err
	}
	s.store.allocated = 0 // a file made by copying may have holes
	free, err := disk.FreeBytes(s.dir.path)
	if err != nil {
		free = 1 << 60 // not knowing is no reason to fail
	}
	free += uint64(info.Size())
	if err := s.store.guard(s.store.measure); err != nil {
		return err
	}
	s.room = newRoom(s.store, s.cfg, free, info.Size()-s.store.space.highWater)
	s.room.promise = s.owed
	if err := s.reserveRoom(info.Size()); err != nil {
		return err
	}
	if err := s.loadKeys(); err != nil {
		return err
	}
	if err := s.ensureBuckets(); err != nil {
		return fmt.Errorf("the spool in %s cannot be written: %w", s.dir.path, err)
	}
	if err := s.load(); err != nil {
		return err
	}
	if err := s.sayOlder(s.counters.nextSeq); err != nil {
		return fmt.Errorf("the spool in %s cannot be written: %w", s.dir.path, err)
	}
	s.foresee()
	s.noteSpace()
	return nil
}

// reserveRoom gives the whole file blocks, and the reserve beyond it. A full disk is no reason not to start: what waits
// can be delivered, and that makes room.
func (s *Spool) reserveRoom(size int64) error {
	if err := s.store.allocate(size); err != nil && !isNoSpace(err) {
		return fmt.Errorf("the spool's file cannot be written: %w", err)
	}
	s.store.allocated = max(s.store.allocated, size)
	want := min(s.store.space.highWater+s.room.reserve, s.cfg.MaxBytes)
	if err := s.store.allocate(want); err != nil {
		s.cfg.Logger.Warn("the disk has no room for the spool's reserve: events are refused until there is some",
			slog.Any("error", err))
	}
	return nil
}

// openComplete opens the file if its buckets are all there. A bit that flips in the name of one leaves a database that is
// sound in all else, and to make an empty one in its place would be to forget what is in it without a word.
func openComplete(path string, maxSize int64) (*store, error) {
	st, err := openStore(path, maxSize)
	if err != nil {
		return nil, err
	}
	missing := ""
	err = st.view(func(tx *bolt.Tx) error {
		known := 0
		for b := range layout.NumBuckets {
			if tx.Bucket(b.Name()) != nil {
				known++
			} else {
				missing = b.String()
			}
		}
		meta := tx.Bucket(layout.Meta.Name())
		if known == 0 || meta == nil && known < int(layout.NumBuckets)/2 || meta != nil && !bytes.Equal(meta.Get(layout.KeyFormat), []byte{layout.Format}) {
			missing = "" // new, somebody else's, or of another version: that is judged elsewhere
		}
		return nil
	})
	if err == nil && missing != "" {
		err = fmt.Errorf("%w: bucket %s is missing", errDamaged, missing)
	}
	if err != nil {
		return nil, errors.Join(err, st.abandon())
	}
	return st, nil
}

// checkFormat refuses what another program or a newer Postern wrote. A file without any bucket is new.
func (st *store) checkFormat() error {
	return st.view(func(tx *bolt.Tx) error {
		name, _ := tx.Cursor().First()
		if name == nil {
			return nil
		}
		meta := tx.Bucket(layout.Meta.Name())
		if meta == nil {
			return fmt.Errorf("%s: %w: choose another spool.dir", st.path, ErrNotSpool)
		}
		format := meta.Get(layout.KeyFormat)
		switch {
		case len(format) != 1 || format[0] == 0: // no version ever wrote a zero
			return fmt.Errorf("%s: %w: choose another spool.dir", st.path, ErrNotSpool)
		case format[0] > layout.Format:
			return fmt.Errorf("%s: %w (format %d, this one knows up to %d): run the newer version, or let it drain the spool",
				st.path, ErrNewerFormat, format[0], layout.Format)
		}
		return nil
	})
}

// ensureBuckets makes what is missing and, in a new spool, the instance.
func (s *Spool) ensureBuckets() error {
	missing := false
	err := s.store.view(func(tx *bolt.Tx) error {
		for b := range layout.NumBuckets {
			missing = missing || tx.Bucket(b.Name()) == nil
		}
		if missing {
			return nil
		}
		meta := tx.Bucket(layout.Meta.Name())
		missing = meta.Get(layout.KeyInstance) == nil || !bytes.Equal(meta.Get(layout.KeyFormat), []byte{layout.Format})
		return nil
	})
	missing = missing || !slices.Contains(s.keys.noted(), s.ring().Newest()) || s.ring().Seals() && s.blind() == nil
	if err != nil || !missing {
		return err
	}
	if err := s.notClean(); err != nil {
		return err
	}
	ring, blind := s.ring(), s.blind()
	ids := s.keys.with(ring.Newest())
	if blind == nil && ring.Seals() {
		blind = newBlindKey()
	}
	err = s.store.update(func(tx *bolt.Tx) error {
		if err := makeBuckets(tx); err != nil {
			return err
		}
		meta := tx.Bucket(layout.Meta.Name())
		if blind != nil {
			if err := meta.Put(layout.KeyBlind, blind.encode(ring)); err != nil {
				return err
			}
		}
		return meta.Put(layout.KeyKeys, encodeKeys(ids))
	})
	if err == nil && blind != nil {
		s.keys.blind.Store(&blind)
	}
	if err == nil {
		s.keys.note(ids)
	}
	return err
}

func makeBuckets(tx *bolt.Tx) error {
	for b := range layout.NumBuckets {
		if _, err := tx.CreateBucketIfNotExists(b.Name()); err != nil {
			return err
		}
	}
	meta := tx.Bucket(layout.Meta.Name())
	if meta.Get(layout.KeyInstance) == nil {
		if err := meta.Put(layout.KeyInstance, sealText(layout.KindInstance, uuid.NewString())); err != nil {
			return err
		}
	}
	return meta.Put(layout.KeyFormat, []byte{layout.Format})
}

// cannotBe tells that bbolt could not make sense of a file.
func cannotBe(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrChecksum) ||
		errors.Is(err, berrors.ErrVersionMismatch)
}

// openError says what to do about a file that cannot be opened.
func openError(dir *directory, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the spool's file cannot be opened: %w: let the user that Postern runs as own %s", err, dir.path)
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s: %w", dir.file(), ErrInUse)
	}
	return fmt.Errorf("open the spool: %w", err)
}

// abandon closes without a last commit.
func (st *store) abandon() error {
	if st.damaged.Load() {
		return st.file.Close()
	}
	return errors.Join(st.cur.db.Close(), st.file.Close())
}

// damaged is told of the first sign that the file is damaged.
func (s *Spool) damaged(cause any) {
	s.setWritable(false, fmt.Errorf("%v", cause))
	if err := s.dir.markDamaged(); err != nil {
		s.cfg.Logger.Error("the spool's damage could not be noted: run postern spool salvage before the next start",
			slog.Any("error", err))
	}
	if err, ok := cause.(error); ok && s.cfg.Damaged != nil {
		s.cfg.Damaged(err)
	}
}

// notClean takes back the mark of a clean close before the first commit.
func (s *Spool) notClean() error {
	if s.committer.started {
		return nil
	}
	if err := s.dir.unmarkClean(); err != nil {
		return err
	}
	s.committer.started = true
	return nil
}

func (s *Spool) closeFiles() error {
	s.noteNext()
	err := s.store.close(s.committer.started)
	if err == nil && !s.store.damaged.Load() {
		if merr := s.dir.markClean(); merr != nil {
			s.cfg.Logger.Warn("the next start has to look through the whole spool", slog.Any("error", merr))
		}
	}
	return errors.Join(err, s.lock.Unlock())
}
