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

// batch gathers while the one before it is committed. Everybody in it waits for the same two channels.
type batch struct {
	ops   []operation
	bytes int
	done  chan struct{} // closed when all are settled
	late  chan struct{} // closed when that took longer than an acceptance may wait

	begun time.Time
	limit *time.Timer // closes late
}

// gatherTime is how long a batch takes more in, while the disk hangs: who comes later waits in one with a limit of its own.
const gatherTime = 100 * time.Millisecond

// newBatch begins a batch. One timer serves all that join it, so that none of them waits less than appendTimeout.
func newBatch(now time.Time) *batch {
	b := &batch{done: make(chan struct{}), late: make(chan struct{}), begun: now}
	b.limit = time.AfterFunc(appendTimeout+gatherTime, func() { close(b.late) })
	return b
}

// takes tells whether there is room for one more.
func (b *batch) takes(size int, now time.Time) bool {
	return len(b.ops) < maxBatchOps && b.bytes+size <= maxBatchBytes && now.Sub(b.begun) < gatherTime
}

// settled tells everybody in it that the outcome is there.
func (b *batch) settled() {
	b.limit.Stop()
	close(b.done)
}

// queue holds what waits for the committer.
type queue struct {
	mu      sync.Mutex // guards everything below
	batches []*batch
	bytes   int
	closed  bool

	wake chan struct{} // has one element while there is something to take
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add queues an operation and returns the batch whose done closes after its settle. It never blocks. A lasting operation
// is refused only by a closed queue.
func (q *queue) add(op operation) (*batch, error) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, ErrClosed
	case !op.lasting() && q.bytes > maxQueueBytes:
		return nil, ErrUnwritable
	}
	size := op.size()
	b := q.last()
	if b == nil || !b.takes(size, now) {
		b = newBatch(now)
		q.batches = append(q.batches, b)
	}
	b.ops = append(b.ops, op)
	b.bytes += size
	q.bytes += size
	q.ring()
	return b, nil
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
