package scheduler

import (
	"time"

	"postern/limiter"
	"postern/limiter/quantile"
	"postern/spool"
)

// line is what the scheduler knows of one endpoint. It belongs to the goroutine of Run.
type line struct {
	s          *Scheduler
	name       string
	policy     Policy
	configured bool
	gate       *limiter.Gate
	latency    *quantile.Window
	lastP95    time.Time
	samples    int // at lastP95

	// fresh holds leases straight from their commit, in order; backlog those read back from disk.
	fresh, backlog queue[*spool.Lease]
	// diskDue is when the earliest event that is only on disk is due; zero: there is none that we know of.
	diskDue time.Time

	answered                bool      // the endpoint has said something, other than 429, since this process began
	tried, slow             bool      // an attempt has ended since this process began; the last one held its slot for long
	busySince               time.Time // when inFlight last left zero
	inFlight, freshInFlight int
	retrying                int  // of inFlight: attempts of events that were tried before
	turn                    bool // alternates where there is but one slot
	shown                   shown
	heldUntil               time.Time // see exhaustedPause
	reserving               bool      // a reservation is on its way to the disk

	queued   bool                         // in Scheduler.ready
	crowded  bool                         // waits for a slot
	place    place                        // where in share.crowded
	listed   [standings][further + 1]bool // has an entry there, which counts if it is its place
	called   bool                         // by uncrowd, and not served since
	wake     time.Time                    // in Scheduler.timers, where index >= 0
	index    int
	lastUsed time.Time
}

// line finds or makes the line of an endpoint.
func (s *Scheduler) line(name string) *line {
	if l, ok := s.lines[name]; ok {
		return l
	}
	now := s.clock.now()
	l := &line{s: s, name: name, index: -1, latency: s.cfg.Windows.NewWindow(), lastUsed: now}
	l.policy, l.configured = s.cfg.Policies.Policy(name)
	l.gate = limiter.New(l.policy.Limiter, now)
	s.lines[name] = l
	return l
}

// takeFresh keeps a fresh lease in memory while its endpoint keeps up and memory allows. Else it goes back: the event
// is on disk and is read again in its turn.
func (l *line) takeFresh(lease *spool.Lease) {
	if l.fresh.len() >= l.freshLimit() || l.s.heldBytes+footprint(lease) > l.s.cfg.MemoryBytes || l.s.stopping {
		l.s.cfg.Store.Release(lease)
		l.dueOnDisk(lease.Event.AcceptedAt)
		return
	}
	l.push(&l.fresh, lease)
}

// footprint is about what a waiting lease takes of memory.
func footprint(lease *spool.Lease) int64 {
	n := 1024 + len(lease.Event.Body) + len(lease.Event.Target)
	for _, h := range lease.Event.Headers {
		n += len(h.Name) + len(h.Value) + 32
	}
	return int64(n)
}

func (l *line) push(q *queue[*spool.Lease], lease *spool.Lease) {
	l.s.heldBytes += footprint(lease)
	q.push(lease)
}

// freshLimit is how many fresh events a line may hold: a few rounds of its slots, so that one endpoint that falls
// behind does not fill the memory that all share.
func (l *line) freshLimit() int { return 64 + 8*l.policy.Limiter.Concurrency }

// dueOnDisk notes that an event which is not in memory is due at this time.
func (l *line) dueOnDisk(at time.Time) {
	if at.IsZero() {
		return
	}
	if l.diskDue.IsZero() || at.Before(l.diskDue) {
		l.diskDue = at
	}
}

// waiting tells whether something could be tried now.
func (l *line) waiting(now time.Time) bool {
	return l.fresh.len() > 0 || l.backlog.len() > 0 || l.diskReady(now)
}

func (l *line) diskReady(now time.Time) bool { return !l.diskDue.IsZero() && !l.diskDue.After(now) }

// letGo gives back everything that the line holds in memory: its endpoint is stopped for longer than memory should be
// used for it.
func (l *line) letGo() {
	for _, q := range []*queue[*spool.Lease]{&l.fresh, &l.backlog} {
		for q.len() > 0 {
			lease := l.pop(q)
			l.s.cfg.Store.Release(lease)
			l.dueOnDisk(dueTime(lease))
		}
	}
}

func dueTime(lease *spool.Lease) time.Time {
	switch {
	case !lease.Progress.NextAttempt.IsZero():
		return lease.Progress.NextAttempt
	case !lease.Event.NotBefore.IsZero():
		return lease.Event.NotBefore
	}
	return lease.Event.AcceptedAt
}

func (l *line) pop(q *queue[*spool.Lease]) *spool.Lease {
	lease := q.pop()
	l.s.heldBytes -= footprint(lease)
	return lease
}

// choose picks the queue that the next attempt is taken from, or nil where there is nothing that a slot may be given
// to. New events have up to a quarter of the slots before the backlog, and an eighth that the backlog never takes.
func (l *line) choose(now time.Time) *queue[*spool.Lease] {
	slots := l.slots(now)
	l.fill(now)
	fresh, backlog := l.fresh.len() > 0, l.backlog.len() > 0
	switch {
	case fresh && backlog && slots == 1:
		l.turn = !l.turn
		if l.turn {
			return &l.fresh
		}
		return &l.backlog
	case fresh && (!backlog || l.freshInFlight < max(1, slots/4)):
		return &l.fresh
	case backlog && (slots == 1 || l.inFlight-l.freshInFlight < slots-max(1, slots/8)):
		return &l.backlog
	case fresh:
		return &l.fresh
	}
	return nil
}

// fill reads the next due events from disk when the line has used up what it read before.
func (l *line) fill(now time.Time) {
	if l.backlog.len() > 0 || !l.diskReady(now) {
		return
	}
	// At least one event is read whatever the memory says: a line that gets nothing would never go on.
	room := min(readAheadBytes, l.s.cfg.MemoryBytes-l.s.heldBytes)
	leases, next, err := l.s.cfg.Store.Lease(l.name, now, readAhead, max(room, 1))
	if err != nil {
		l.s.cfg.Logger.Error("reading waiting events failed; trying again in a second", "endpoint", l.name, "error", err)
		next = now.Add(time.Second)
	}
	l.diskDue = next
	for _, lease := range leases {
		l.push(&l.backlog, lease)
	}
}
