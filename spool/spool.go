// Package spool keeps events on disk from their acceptance until nothing is left to be done about them.
//
// It promises: an event whose Append returned without an error survives a kill or a power cut at any moment, and is
// handed out by Lease again and again until a Finish says that it is delivered or dead. A result, once its Done was
// called without an error, is on disk too, and what was recorded as delivered is never handed out again. Of two events
// with one key only one is accepted. The file stays within MaxBytes; a full spool or disk refuses acceptances and goes on
// recording results. A damaged file is salvaged at the next Open instead of failing again and again. Memory grows with
// the events that are leased and with the number of endpoints, not with the events that wait.
//
// It leaves out when and whether an event may be sent, what an answer means, and what happens to the rows of the outbox:
// those are decided by its users, whom it does not know. Order is not promised beyond "due first" within an endpoint.
//
// All methods may be called from any goroutine. DESIGN.md explains how it works and why.
package spool

import (
	"context"
	"sync"
	"time"

	"postern/spool/internal/disk"
)

// Spool is an open spool. Close it, or the next open has to look through the whole file.
type Spool struct {
	cfg      Config
	instance string
	dir      *directory
	lock     *disk.FileLock
	store    *store
	queue    *queue
	leases   leaseTable
	room     *room // the committer's
	keys     keys

	committer  committer // the committer's
	compaction compaction
	deferred   []operation // the committer's: accepts for which history was dropped
	fullness   fullness

	mu       sync.Mutex // guards everything down to the next blank line
	counters counters
	rows     map[string]*endpointRow // never changed in place
	names    map[uint32]string
	sorted   []string    // the names of rows; nil after one came or went
	total    endpointRow // the sums of rows: there may be many thousands
	minutes  minuteRing
	latest   time.Time // that Lease was asked with
	oldest   uint64    // no event before this sequence number is pending
	replays  uint64    // how often oldest may have been set back
	full     bool
	writable bool
	closed   bool
	fileSize int64
	used     int64
	free     int64

	closing chan struct{} // closed by Close
	stopped chan struct{} // closed when the committer has ended
	giveUp  chan struct{} // closed when Close's context ends
	sweep   sweep         // the committer's
}

// InstanceID is a UUID that was made with the spool and never changes.
func (s *Spool) InstanceID() string { return s.instance }

func (s *Spool) now() time.Time { return s.cfg.Now() }

// refusing tells whether a new event has a chance, without asking the disk.
func (s *Spool) refusing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case !s.writable:
		return ErrUnwritable
	}
	return nil
}

// endpointRow returns the committed row, which must not be changed, or nil.
func (s *Spool) endpointRow(name string) *endpointRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[name]
}

func (s *Spool) endpointRows() map[string]*endpointRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]*endpointRow, len(s.rows))
	for name, row := range s.rows {
		out[name] = row
	}
	return out
}

// endpointName is the reverse of an endpoint's number, empty where it is unknown.
func (s *Spool) endpointName(id uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[id]
}

// publish makes a transaction's effects the spool's state.
func (s *Spool) publish(t *txn) {
	s.publishKeys(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters = t.counters
	for name, row := range t.rows {
		s.setRow(name, row)
	}
	s.minutes.add(t.now, t.minute)
	if t.pendedAt > 0 {
		s.oldest = min(s.oldest, t.pendedAt)
		s.replays++ // even where oldest stays: who is looking on from there must not move it beyond the event
	}
}

// noteSpace makes the committer's view of the file visible to Stats.
func (s *Spool) noteSpace() {
	free := s.room.free()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = s.room.refused > 0
	s.fileSize = max(s.store.allocated, s.store.space.highWater)
	s.used, s.free = s.store.space.used(), free
}

// setRow puts an endpoint's row in its place; nil removes it. s.mu is held.
func (s *Spool) setRow(name string, row *endpointRow) {
	old := s.rows[name]
	if old != nil {
		s.total.add(old, -1)
		delete(s.names, old.id)
		delete(s.rows, name)
	}
	if old == nil || row == nil {
		s.sorted = nil
	}
	if row != nil {
		s.total.add(row, 1)
		s.rows[name], s.names[row.id] = row, name
	}
}

// add adds another row's counts n times.
func (r *endpointRow) add(o *endpointRow, n int64) {
	r.pending += n * o.pending
	r.failed += n * o.failed
	r.dead += n * o.dead
	r.done += n * o.done
}

// Close refuses new work, commits what is queued for as long as ctx lasts, and closes the files. Results that could not
// be written are lost with an ErrClosed; their events are handed out again after the next Open.
func (s *Spool) Close(ctx context.Context) error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		<-s.stopped
		return nil
	}
	stop := context.AfterFunc(ctx, func() { close(s.giveUp) })
	defer stop()
	s.queue.close()
	close(s.closing)
	<-s.stopped
	s.keys.end()
	s.keys.work.Wait()
	return s.closeFiles()
}

// lastCommits writes what is queued and kept, until Close's context ends.
func (s *Spool) lastCommits() {
	s.stopCompaction()
	for {
		for s.step() {
		}
		if !s.failing() || s.gaveUp() || s.store.damaged.Load() {
			break
		}
		select {
		case <-time.After(time.Until(s.committer.backoff.until)):
		case <-s.giveUp:
		}
	}
	for _, op := range s.committer.kept {
		op.settle(ErrClosed)
	}
	s.committer.kept = nil
}

func (s *Spool) gaveUp() bool {
	select {
	case <-s.giveUp:
		return true
	default:
		return false
	}
}
