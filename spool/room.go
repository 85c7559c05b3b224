package spool

import (
	"errors"
	"fmt"
	"time"

	berrors "go.etcd.io/bbolt/errors"
)

// Room is counted twice: against max_bytes in pages that are in use, and against the disk in blocks that the file really
// has. Both keep a reserve that accepts never touch, so that the result of an attempt can be recorded however full the
// spool or the disk is. A commit of results writes few pages, since a dead letter's payload stays where it is.

const (
	minReserve = 64 * pageSize
	maxReserve = 4 * mib
	// smallShare of max_bytes is the reserve at most: the smallest spools must have room for a few events beside it.
	smallShare = 4
	// compactShare of max_bytes is kept for the copy that makes the file short again after it was full.
	compactShare = 16
	// maxGrowth is how much the file grows at once: what it grows by is written in the next sync, and holds it up.
	maxGrowth = mib
	// fullRetry is how often a disk that was full is asked again.
	fullRetry = time.Second
)

// errDiskFull tells a disk without room from a spool that has used up what it may.
var errDiskFull = errors.New("the disk has no room")

// space is how much of the file is used, as of the last transaction.
type space struct {
	highWater int64 // bytes up to the last page ever used
	free      int64 // of them on the freelist
}

func (sp space) used() int64 { return sp.highWater - sp.free }

// room answers what still fits. It belongs to the committer.
type room struct {
	st       *store
	maxBytes int64 // what events and the reserve may use together
	bound    int64 // of the file
	reserve  int64
	space    space
	taken    int64 // by the present transaction
	// owed is what the results of the events that wait will take, at least; promise tells it at a transaction's beginning.
	owed    int64
	promise func() int64
	lent    int64 // of the file's bound, to the copy in the making

	refused    int64     // the biggest size refused since all fitted; 0: none
	byDisk     bool      // it was for want of room on the disk
	refusals   int64     // how often something did not fit
	diskFullAt time.Time // when the disk last refused; zero: it did not

	// A commit can fail although there is room: in pieces too small for a big event. Sizes from stuckSize on are refused
	// then until less is in use than there was, or, where it was the disk that refused, for a while.
	stuckSize, stuckUsed int64
	stuckUntil           time.Time
}

// newRoom counts with the free bytes of the disk, those of the file included, and with what the file has beyond its last
// used page.
func newRoom(st *store, cfg Config, free uint64, tail int64) *room {
	reserve := min(max(cfg.MaxBytes/256, minReserve), maxReserve, cfg.MaxBytes/smallShare)
	// On a small disk a reserve made for a big spool would leave nothing for events. One that is there already stays: a disk
	// that others have filled meanwhile is no small one.
	onDisk := st.allocated + int64(min(free, 1<<60))
	reserve = min(reserve, max(onDisk/8, minReserve/2, tail))
	return &room{st: st, maxBytes: cfg.MaxBytes - cfg.MaxBytes/compactShare, bound: cfg.MaxBytes, reserve: reserve,
		promise: func() int64 { return 0 }}
}

// begin starts counting for one transaction.
func (r *room) begin() {
	r.taken = 0
	r.space = r.st.space
	r.owed = r.promise()
}

// cost is what an event of a size takes in pages, at most: bigger ones get pages of their own.
func cost(size int64) int64 {
	if size > pageSize/4 {
		return size + pageSize/2
	}
	return size + size/16
}

// take books room for an event of size bytes, and for what its results will take, or returns ErrFull.
func (r *room) take(size int64) error {
	if err := r.fits(cost(size) + owedPending); err != nil {
		r.refuse(size, err)
		return err
	}
	r.taken += cost(size) + owedPending
	return nil
}

// refuse remembers what did not fit, and why.
func (r *room) refuse(size int64, err error) {
	r.refused = max(r.refused, size)
	r.byDisk = errors.Is(err, errDiskFull)
	r.refusals++
}

func (r *room) fits(n int64) error {
	if used := r.space.used() + r.taken; used+n+r.owed+r.reserve > r.maxBytes {
		return fmt.Errorf("%w: %d of %d bytes are used", ErrFull, used, r.maxBytes)
	}
	if r.stuck(n) {
		if !r.stuckUntil.IsZero() {
			return fmt.Errorf("%w: %w", ErrFull, errDiskFull)
		}
		return fmt.Errorf("%w: what is free is in pieces too small", ErrFull)
	}
	if err := r.keepTail(); err != nil {
		return err
	}
	return r.allocateFor(n)
}

// keepTail makes sure that a good part of the reserve is in one piece behind the last used page, as far as the disk allows:
// free pages lie in pieces, and to record the result of one big event others beside it are written anew.
func (r *room) keepTail() error {
	want := min(r.space.highWater+r.reserve, r.bound-r.lent)
	if want <= r.st.allocated {
		return nil
	}
	err := r.grow(want)
	if err != nil && r.st.allocated-r.space.highWater < r.reserve/2 {
		return err
	}
	return nil
}

// grow gives the file blocks, unless the disk said a moment ago that it has none.
func (r *room) grow(size int64) error {
	if !r.diskFullAt.IsZero() && time.Since(r.diskFullAt) < fullRetry {
		return fmt.Errorf("%w: %w", ErrFull, errDiskFull)
	}
	if err := r.st.allocate(size); err != nil {
		r.diskFullAt = time.Now()
		return fmt.Errorf("%w: %w: %w", ErrFull, errDiskFull, err)
	}
	r.diskFullAt = time.Time{}
	return nil
}

// free is what events may still take of max_bytes: nothing where what is free lies in pieces that were too small.
func (r *room) free() int64 {
	if r.stuckSize > 0 {
		return 0
	}
	return max(0, r.maxBytes-r.st.space.used()-r.promise()-r.reserve)
}

func (r *room) stuck(n int64) bool {
	if r.stuckSize == 0 || n < r.stuckSize {
		return false
	}
	if r.space.used() < r.stuckUsed || !r.stuckUntil.IsZero() && time.Now().After(r.stuckUntil) {
		r.stuckSize = 0
		return false
	}
	return true
}

// allocateFor makes sure that the disk has the blocks. Free pages count three quarters: some are too small for what comes.
func (r *room) allocateFor(n int64) error {
	have := r.st.allocated - r.space.highWater + r.space.free/4*3
	short := r.reserve + r.owed + r.taken + n - have
	if short <= 0 {
		return nil
	}
	if r.lent > 0 && r.st.allocated+short > r.bound-r.lent {
		return fmt.Errorf("%w: a copy of the file is in the making", ErrFull)
	}
	want := min(r.st.allocated+short, r.maxBytes)
	step := min(max(r.st.allocated/8, 16*pageSize), maxGrowth)
	if r.diskFullAt.IsZero() && r.st.allocate(max(want, min(want+step, r.maxBytes, r.bound-r.lent))) == nil {
		return nil
	}
	return r.grow(want)
}

// blocked notes that a commit failed for want of room although there seemed to be some. size is the biggest in it.
func (r *room) blocked(size int64, cause error) {
	r.refused = max(r.refused, size)
	r.stuckSize, r.stuckUsed, r.stuckUntil = cost(size), r.space.used(), time.Time{}
	if !errors.Is(cause, berrors.ErrMaxSizeReached) {
		r.stuckUntil = time.Now().Add(fullRetry)
	}
}

// recheck ends the refusal when what was refused fits again.
func (r *room) recheck() {
	if r.refused == 0 {
		return
	}
	r.begin()
	if r.fits(cost(r.refused)+owedPending) == nil {
		r.refused = 0
	}
}
