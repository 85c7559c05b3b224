package syncer

import (
	"context"
	"log/slog"
	"time"

	"postern/sync/pgstore"
)

// Syncer carries rows. Run it once; its other methods may be called from any goroutine.
type Syncer struct {
	cfg   Config
	parts Parts
	log   *slog.Logger

	reopen chan struct{} // has one element while a new store is wanted
	meter  meter

	// What follows belongs to Run's goroutine.
	store    Store
	ready    bool // the schema was looked at
	backoff  backoff
	outage   outage
	losses   losses
	refused  int // rows refused since the store last took one
	health   map[string]pgstore.Health
	check    check
	reportAt time.Time
	healthAt time.Time
	keepAt   time.Time
	started  time.Time
}

// New returns a syncer that does nothing until Run.
func New(cfg Config, parts Parts) *Syncer {
	if parts.Logger == nil {
		parts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Syncer{cfg: cfg.withDefaults(), parts: parts, log: parts.Logger, reopen: make(chan struct{}, 1), started: time.Now()}
}

// Reopen makes the syncer ask for a new store before its next batch: the connection string has changed.
func (s *Syncer) Reopen() {
	select {
	case s.reopen <- struct{}{}:
	default:
	}
}

// Run carries rows until ctx ends; then it flushes what waits and says goodbye, within StopLimit in all, and returns.
func (s *Syncer) Run(ctx context.Context) {
	// The work outlives ctx: what is under way when it ends has StopLimit to finish.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(s.cfg.StopLimit):
			cancel()
		case <-work.Done():
		}
	})()
	defer s.drop()
	s.peek()
	for ctx.Err() == nil {
		if s.rest(ctx, s.round(work)) {
			s.drop()
		}
	}
	s.flush(work)
}

// round does one piece of work and returns how long to rest after it.
func (s *Syncer) round(ctx context.Context) time.Duration {
	began := time.Now()
	full, err := s.step(ctx)
	if err != nil {
		return s.failed(err)
	}
	s.recovered()
	switch {
	case full && s.parts.Busy != nil && !s.parts.Busy():
		return 0
	case full:
		// A backlog is worked off at two thirds of the speed that there is, for the sake of deliveries.
		return min(time.Since(began)/2, maxRest)
	}
	return max(s.cfg.Interval-time.Since(began), 0)
}

// maxRest bounds the rest between the batches of a backlog.
const maxRest = 200 * time.Millisecond

// step makes sure of the store, carries one batch, and reports and compares if it is time. full tells that there is more
// to do.
func (s *Syncer) step(ctx context.Context) (full bool, err error) {
	if err := s.prepare(ctx); err != nil {
		return false, err
	}
	if full, err = s.pump(ctx); err != nil {
		if pgstore.Classify(err) == pgstore.KindData {
			_ = s.report(ctx, time.Now()) // whoever refuses rows may still be told that this instance is alive
		}
		return false, err
	}
	if err := s.report(ctx, time.Now()); err != nil || full {
		return full, err
	}
	return s.reconcile(ctx, time.Now())
}

// prepare opens the store and looks at its schema, where that is still to be done.
func (s *Syncer) prepare(ctx context.Context) error {
	if s.store == nil {
		store, err := s.parts.Open(ctx)
		if err != nil {
			return err
		}
		s.store, s.ready = store, false
	}
	if s.ready {
		return nil
	}
	if err := s.store.Migrate(ctx); err != nil {
		return err
	}
	s.ready = true
	s.health, s.reportAt, s.keepAt = nil, time.Time{}, time.Time{}
	return nil
}

// drop gives the store up; prepare opens another.
func (s *Syncer) drop() {
	if s.store != nil {
		s.store.Close()
	}
	s.store, s.ready = nil, false
	s.check.anew()
	s.backoff.reset()
}

// rest waits, and tells whether it was woken because a new store is wanted.
func (s *Syncer) rest(ctx context.Context, d time.Duration) (reopen bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.reopen:
		return true
	}
	return false
}

// flush carries what is left and says goodbye. The first failure ends it: there is no time for another try.
func (s *Syncer) flush(ctx context.Context) {
	more := true
	for more && ctx.Err() == nil {
		if err := s.prepare(ctx); err != nil {
			return
		}
		full, err := s.pump(ctx)
		if err != nil {
			s.log.Warn("what waits for Postgres stays in the spool until the next start", slog.Any("error", err))
			return
		}
		more = full
	}
	s.goodbye(ctx)
}

// outage is a time without the store, for the log.
type outage struct {
	since  time.Time
	said   string
	saidAt time.Time
}

// sayEvery bounds how often another failure of one outage is logged; status always shows the latest.
const sayEvery = 30 * time.Second

// failed notes a failure and returns how long to wait.
func (s *Syncer) failed(err error) time.Duration {
	kind := pgstore.Classify(err)
	if kind == pgstore.KindSetup {
		s.ready = false // a person may mend it, or a migration
	}
	now, text := time.Now(), err.Error()
	if s.outage.since.IsZero() {
		s.outage.since = now
	}
	s.meter.fail(text)
	s.peek()
	s.sayLosses(now, false)
	if text != s.outage.said && now.Sub(s.outage.saidAt) >= sayEvery {
		s.outage.said, s.outage.saidAt = text, now
		s.log.Warn("sync waits; deliveries are not affected", slog.String("kind", kind.String()), slog.Any("error", err))
	}
	return s.backoff.next()
}

func (s *Syncer) recovered() {
	s.backoff.reset()
	s.sayLosses(time.Now(), !s.outage.since.IsZero())
	if since := s.outage.since; !since.IsZero() {
		s.log.Info("sync works again", slog.Float64("after_seconds", time.Since(since).Seconds()))
		s.outage = outage{}
	}
	s.meter.succeed(time.Now())
}
