package spool

import (
	"sync"
	"time"
)

// operation is one change that waits for the committer.
type operation interface {
	// apply makes the change within the transaction. Its error is the operation's own answer, and it must come before the
	// first write: an operation that fails changes nothing.
	apply(t *txn) error
	// settle is told the outcome, once, by the committer: after the commit, or when there will be none.
	settle(err error)
	// size is about how many bytes it writes.
	size() int
	// lasting operations are results of attempts: they stay queued until they are on disk. The others are refused where
	// the disk refuses.
	lasting() bool
}

// A batch is what one transaction takes: no more than this, so that a transaction neither lasts nor outgrows the reserve.
const (
	maxBatchOps   = 2048
	maxBatchBytes = 4 * mib
	// maxQueueBytes bounds what may wait for a disk that hangs. Results are not counted: they are bounded by the leases.
	maxQueueBytes = 64 * mib
)

// batch gathers while the one before it is committed: all that comes, however long that takes. Were it closed by time, there
// would be more batches than commits on a slow disk, and who comes later would wait longer and longer. Everybody in it
// waits for one channel.
type batch struct {
	ops   []operation
	bytes int
	done  chan struct{}
}

// patience is how long acceptances wait for their commit. One timer serves all that come within a short time of each other,
// whatever batch they are in, and none of them waits less than appendTimeout.
type patience struct {
	begun time.Time
	over  chan struct{}
}

// patienceTakes is for how long those who come share one patience.
const patienceTakes = 100 * time.Millisecond

// place is what an operation waits by.
type place struct {
	done <-chan struct{} // closes after its settle; of a lasting one perhaps before
	late <-chan struct{} // closes when that took longer than an acceptance may wait; nil for a lasting one
}

// queue holds what waits for the committer.
type queue struct {
	mu       sync.Mutex // guards everything below
	batches  []*batch
	bytes    int
	closed   bool
	patience *patience // of those who come now

	wake chan struct{} // has one element while there is something to take
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add queues an operation. It never blocks. A lasting operation is refused only by a closed queue.
func (q *queue) add(op operation) (place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return place{}, ErrClosed
	case !op.lasting() && q.bytes > maxQueueBytes:
		return place{}, ErrUnwritable
	}
	size := op.size()
	b := q.last()
	if b == nil || len(b.ops) >= maxBatchOps || b.bytes+size > maxBatchBytes {
		b = &batch{done: make(chan struct{})}
		q.batches = append(q.batches, b)
	}
	b.ops = append(b.ops, op)
	b.bytes += size
	q.bytes += size
	q.ring()
	at := place{done: b.done}
	if !op.lasting() {
		at.late = q.lateLocked()
	}
	return at, nil
}

func (q *queue) lateLocked() <-chan struct{} {
	now := time.Now()
	if q.patience == nil || now.Sub(q.patience.begun) >= patienceTakes {
		over := make(chan struct{})
		time.AfterFunc(appendTimeout+patienceTakes, func() { close(over) })
		q.patience = &patience{now, over}
	}
	return q.patience.over
}

// ring keeps wake filled while something waits.
func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) last() *batch {
	if len(q.batches) == 0 {
		return nil
	}
	return q.batches[len(q.batches)-1]
}

// take removes the next batch; nil means that nothing waits.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return nil
	}
	b := q.batches[0]
	q.batches[0] = nil
	q.batches = q.batches[1:]
	q.bytes -= b.bytes
	if len(q.batches) > 0 {
		q.ring()
	}
	return b
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// backoff is the wait between tries while the disk refuses.
type backoff struct {
	wait  time.Duration
	until time.Time
}

const (
	backoffStart = 50 * time.Millisecond
	backoffCap   = time.Second
)

func (b *backoff) fail(now time.Time) {
	b.wait = min(max(2*b.wait, backoffStart), backoffCap)
	b.until = now.Add(b.wait)
}

func (b *backoff) reset() { *b = backoff{} }
