package scheduler

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"postern/spool"
)

// errStopped is the cause with which attempts are cut when the grace of a stop has passed.
var errStopped = errors.New("postern is stopping")

const (
	// quantum is how many attempts one line may start before the next line has its turn.
	quantum = 8
	// readAhead is how many due events a line takes from disk at once: enough to make one read transaction cheap per
	// event, few enough to be nothing in memory.
	readAhead = 64
	// readAheadBytes bounds the bodies of one such read.
	readAheadBytes = 1 << 20
	// rereadPause is how soon a line looks at the disk again that said something was due and gave nothing.
	rereadPause = 50 * time.Millisecond
	// lookAnew is how long the scheduler sleeps at most: its timer counts monotonic time, which does not see that the
	// wall clock was set ahead, or that the machine slept.
	lookAnew = 10 * time.Second
	// unwritablePause is how long the scheduler waits before it looks again whether the spool can be written.
	unwritablePause = 100 * time.Millisecond
)

// Scheduler is made by New and runs in Run. All its methods are safe for concurrent use.
type Scheduler struct {
	cfg   Config
	box   *mailbox
	done  chan struct{}
	clock clock

	// sending is the context of all attempts; cut ends it.
	sending context.Context
	cut     context.CancelCauseFunc
	crew    crew

	// What is in flight, for status pages; the scheduler's goroutine writes, anybody reads.
	inFlightPending, inFlightFailed atomic.Int64

	running running

	// What follows belongs to the goroutine of Run.
	lines      map[string]*line
	ready      queue[*line] // round robin; a line is in it at most once
	share      share
	timers     timerHeap
	inFlight   int
	unrecorded int
	heldBytes  int64 // of leases that wait in memory
	stopping   bool
	graceOver  bool
	lastSweep  time.Time
}

// New makes a scheduler that knows of nothing yet. Waiting endpoints are told to it with Wake.
func New(cfg Config) *Scheduler {
	cfg.MemoryBytes = cmp.Or(cfg.MemoryBytes, 32<<20)
	cfg.Unrecorded = cmp.Or(cfg.Unrecorded, 4096)
	s := &Scheduler{cfg: cfg, box: newMailbox(), done: make(chan struct{}), lines: map[string]*line{}}
	s.running.seqs = map[uint64]struct{}{}
	s.sending, s.cut = context.WithCancelCause(context.Background())
	return s
}

// Attach gives the scheduler its store, where that was opened after New because it tells the scheduler of its commits.
// It is called before Run and Restore.
func (s *Scheduler) Attach(store Store) { s.cfg.Store = store }

// Run decides until Stop has been called and everything in flight has ended. It is called once.
func (s *Scheduler) Run() {
	defer close(s.done)
	defer func() { s.crew.dismiss(0) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var messages []message
	for !s.finished() {
		select {
		case <-s.box.signal:
		case <-timer.C:
		}
		messages = s.box.take(messages[:0])
		for i, m := range messages {
			m.handle()
			messages[i] = nil
		}
		now := s.clock.now()
		s.wakeDue(now)
		pause := s.pump(now)
		s.crew.review(now)
		timer.Reset(s.untilNext(s.clock.now(), pause))
	}
}

// finished waits for results to be on disk as well, so that the last of them are told too. A stop that ran out of
// grace, or whose disk takes nothing, does not: the spool's own closing goes on with those.
func (s *Scheduler) finished() bool {
	return s.stopping && s.inFlight == 0 && (s.unrecorded == 0 || s.graceOver || !s.cfg.Store.Writable())
}

// untilNext is how long nothing needs to be done, if nothing happens.
func (s *Scheduler) untilNext(now time.Time, pause time.Duration) time.Duration {
	if pause > 0 {
		return pause
	}
	wait := lookAnew
	if s.stopping {
		return unwritablePause
	}
	if len(s.timers) > 0 {
		wait = min(wait, max(0, s.timers[0].wake.Sub(now)))
	}
	return wait
}

// wakeDue makes ready the lines whose time has come.
func (s *Scheduler) wakeDue(now time.Time) {
	for len(s.timers) > 0 && !s.timers[0].wake.After(now) {
		s.enqueue(s.timers[0])
	}
}

// Committed takes over what a commit brought: fresh leases, and word of what is due when. It is the spool's callback
// and does not block.
func (s *Scheduler) Committed(batch []spool.Committed) {
	s.box.post(func() {
		for _, c := range batch {
			l := s.line(c.Endpoint)
			if c.Lease != nil {
				l.takeFresh(c.Lease)
			} else {
				l.dueOnDisk(c.DueAt)
			}
			s.enqueue(l)
		}
	})
}

// Wake tells of endpoints that have events waiting on disk: after a start, or when something was released.
func (s *Scheduler) Wake(endpoints ...string) {
	s.box.post(func() {
		now := s.clock.now()
		for _, name := range endpoints {
			l := s.line(name)
			l.dueOnDisk(now)
			s.enqueue(l)
		}
	})
}

// enqueue makes a line ready, and takes back its alarm.
func (s *Scheduler) enqueue(l *line) {
	s.setWake(l, time.Time{})
	if !l.queued {
		l.queued = true
		s.ready.push(l)
	}
}

// setWake sets, moves or (zero) removes the line's alarm.
func (s *Scheduler) setWake(l *line, at time.Time) {
	l.wake = at
	switch {
	case at.IsZero() && l.index >= 0:
		heap.Remove(&s.timers, l.index)
	case at.IsZero():
	case l.index >= 0:
		heap.Fix(&s.timers, l.index)
	default:
		heap.Push(&s.timers, l)
	}
}

// ask runs f in the scheduler's goroutine and waits for it; false after the end of Run.
func (s *Scheduler) ask(f func()) bool {
	answered := make(chan struct{})
	s.box.post(func() { f(); close(answered) })
	select {
	case <-answered:
		return true
	case <-s.done:
		return false
	}
}

// InFlight counts the running attempts: of events never tried before, and of others.
func (s *Scheduler) InFlight() (pending, failed int64) {
	return s.inFlightPending.Load(), s.inFlightFailed.Load()
}

// Running tells whether an attempt of the event with this sequence number is in flight.
func (s *Scheduler) Running(seq uint64) bool { return s.running.has(seq) }

// running holds the sequence numbers in flight.
type running struct {
	mu   sync.Mutex // guards seqs
	seqs map[uint64]struct{}
}

func (r *running) set(seq uint64, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.seqs[seq] = struct{}{}
	} else {
		delete(r.seqs, seq)
	}
}

func (r *running) has(seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.seqs[seq]
	return ok
}

// timerHeap orders lines by their alarm.
type timerHeap []*line

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].wake.Before(h[j].wake) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *timerHeap) Push(x any) {
	l := x.(*line)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop is heap.Interface's.
func (h *timerHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.index = -1
	return l
}
