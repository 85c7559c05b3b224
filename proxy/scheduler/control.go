package scheduler

import (
	"context"
	"strings"
	"time"

	"postern/limiter"
	"postern/limiter/breaker"
	"postern/limiter/quantile"
	"postern/spool"
)

// idleAdHoc is how long the line of an ad hoc endpoint with nothing to do is remembered, and manyAdHoc how many of
// them before that shrinks to a minute: hosts that are seen once must not add up.
const (
	idleAdHoc      = time.Hour
	idleAdHocCrowd = time.Minute
	manyAdHoc      = 1000
	sweepEvery     = 15 * time.Second
)

// Restore gives an endpoint the limiter state that the spool kept. It is called before Run, once per endpoint.
func (s *Scheduler) Restore(endpoint string, state []byte) {
	l := s.line(endpoint)
	gate, err := limiter.Restore(l.policy.Limiter, state, time.Now())
	if err != nil {
		s.cfg.Logger.Warn("the stored limiter state is not usable and was left out", "endpoint", endpoint, "error", err)
	}
	l.gate = gate
}

// Reconfigure reads every line's policy anew: an endpoint that returned goes on, one that left waits.
func (s *Scheduler) Reconfigure(concurrency int) {
	s.ask(func() {
		now := time.Now()
		s.cfg.Concurrency = concurrency
		for _, l := range s.lines {
			l.policy, l.configured = s.cfg.Policies.Policy(l.name)
			l.gate.SetPolicy(l.policy.Limiter, now)
			s.enqueue(l)
		}
	})
}

// EndpointView is what is known of an endpoint while running.
type EndpointView struct {
	Name       string
	Configured bool
	Gate       limiter.Snapshot
	// InFlight counts running attempts; InFlightPending those of them whose event was never tried before.
	InFlight, InFlightPending int
	Latency                   quantile.Summary
	latency                   *quantile.Window
}

// Endpoints lists every endpoint that has a line, with its percentiles. The order is not defined.
func (s *Scheduler) Endpoints() []EndpointView { return withLatency(s.Gates()) }

// Gates is Endpoints without percentiles, which cost most.
func (s *Scheduler) Gates() []EndpointView {
	var views []EndpointView
	s.ask(func() {
		now := time.Now()
		views = make([]EndpointView, 0, len(s.lines))
		for _, l := range s.lines {
			views = append(views, l.view(now))
		}
	})
	return views
}

// Endpoint finds one.
func (s *Scheduler) Endpoint(name string) (EndpointView, bool) {
	var views []EndpointView
	s.ask(func() {
		if l, ok := s.lines[name]; ok {
			views = append(views, l.view(time.Now()))
		}
	})
	if len(views) == 0 {
		return EndpointView{}, false
	}
	return withLatency(views)[0], true
}

func (l *line) view(now time.Time) EndpointView {
	return EndpointView{Name: l.name, Configured: l.configured, Gate: l.gate.Snapshot(now), InFlight: l.inFlight, InFlightPending: l.inFlight - l.retrying, latency: l.latency}
}

// withLatency computes percentiles outside the scheduler's goroutine, since that may mean sorting 100,000 samples.
func withLatency(views []EndpointView) []EndpointView {
	now := time.Now()
	for i := range views {
		views[i].Latency = views[i].latency.Quantiles(now)
	}
	return views
}

// Sample is an attempt from history.
type Sample struct {
	Endpoint string
	At       time.Time
	Duration time.Duration
}

// Remember feeds attempts from history to the percentiles of their endpoints, after a start.
func (s *Scheduler) Remember(batch []Sample) {
	s.box.post(func() {
		for _, sample := range batch {
			s.line(sample.Endpoint).latency.Add(sample.At, sample.Duration)
		}
	})
}

// Pause stops an endpoint until Resume, across restarts. Like Resume and Reset it returns when that is on disk.
func (s *Scheduler) Pause(ctx context.Context, endpoint, reason string) error {
	return s.change(ctx, endpoint, func(g *limiter.Gate, now time.Time) { g.Pause(reason, now) })
}

// Resume lets a paused endpoint go on.
func (s *Scheduler) Resume(ctx context.Context, endpoint string) error {
	return s.change(ctx, endpoint, func(g *limiter.Gate, now time.Time) { g.Resume(now) })
}

// Reset closes an endpoint's breaker.
func (s *Scheduler) Reset(ctx context.Context, endpoint string) error {
	return s.change(ctx, endpoint, func(g *limiter.Gate, now time.Time) { g.Reset(now) })
}

func (s *Scheduler) change(ctx context.Context, endpoint string, f func(*limiter.Gate, time.Time)) error {
	saved := make(chan error, 1)
	s.box.post(func() {
		l, now := s.line(endpoint), time.Now()
		f(l.gate, now)
		s.tell(l, now)
		s.cfg.Store.SaveEndpointState(endpoint, l.gate.State(), func(err error) { saved <- err })
		s.enqueue(l)
	})
	select {
	case err := <-saved:
		return err
	case <-s.done:
		return spool.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweep forgets ad hoc lines that have had nothing to do for a while and whose gate has nothing to remember.
func (s *Scheduler) sweep(now time.Time) {
	if now.Sub(s.lastSweep) < sweepEvery {
		return
	}
	s.lastSweep = now
	keep := idleAdHoc
	if len(s.lines) > manyAdHoc {
		keep = idleAdHocCrowd
	}
	for name, l := range s.lines {
		idle := now.Sub(l.lastUsed) > keep && l.inFlight == 0 && !l.queued && !l.crowded && !l.reserving &&
			l.fresh.len()+l.backlog.len() == 0 && l.diskDue.IsZero()
		if idle && strings.Contains(name, "://") && unremarkable(l.gate.Snapshot(now)) {
			delete(s.lines, name)
		}
	}
}

// unremarkable tells that a gate has nothing to remember: a new one would be the same.
func unremarkable(s limiter.Snapshot) bool {
	return s.Breaker == breaker.Closed && s.ConsecutiveFailures == 0 && !s.Paused && !s.Throttled &&
		s.Concurrency == s.MaxConcurrency && len(s.Limits) == 0
}

// Stop starts nothing more, lets running attempts end until ctx does, then cuts them. It returns when Run has ended.
// What was in memory goes back to the spool untried.
func (s *Scheduler) Stop(ctx context.Context) {
	s.box.post(func() {
		s.stopping = true
		for _, l := range s.lines {
			l.letGo()
		}
	})
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cut(errStopped)
		s.box.post(func() { s.graceOver = true })
	}
	<-s.done
	s.running.Wait()
	s.cut(errStopped)
}

// States gives every gate's state with no send reserved, for the last write of a clean stop. Call it after Stop.
func (s *Scheduler) States() map[string][]byte {
	<-s.done
	states := make(map[string][]byte, len(s.lines))
	for name, l := range s.lines {
		l.gate.GiveBack()
		if !unremarkable(l.gate.Snapshot(time.Now())) {
			states[name] = l.gate.State()
		}
	}
	return states
}
