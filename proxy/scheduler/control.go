package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"postern/limiter"
	"postern/limiter/breaker"
	"postern/limiter/bucket"
	"postern/limiter/quantile"
	"postern/spool"
)

// How long the line of an ad hoc endpoint with nothing to do is remembered: as long as its percentiles reach, or a
// minute where there are many of them, since hosts that are seen once must not add up.
const (
	idleAdHoc      = quantile.Span
	idleAdHocCrowd = time.Minute
	manyAdHoc      = 1000
	sweepEvery     = 15 * time.Second
)

// Restore gives an endpoint the limiter state that the spool kept. It is called before Run, once per endpoint.
func (s *Scheduler) Restore(endpoint string, state []byte) {
	l := s.line(endpoint)
	gate, err := limiter.Restore(l.policy.Limiter, state, s.clock.now())
	if err != nil {
		s.cfg.Logger.Warn("the stored limiter state is not usable and was left out", "endpoint", endpoint, "error", err)
	}
	l.gate = gate
}

// Reconfigure reads every line's policy anew: an endpoint that returned goes on, one that left waits.
func (s *Scheduler) Reconfigure(concurrency int) {
	s.ask(func() {
		now := s.clock.now()
		s.cfg.Concurrency = concurrency
		for _, l := range s.lines {
			before := l.policy.Address
			l.policy, l.configured = s.cfg.Policies.Policy(l.name)
			l.gate.SetPolicy(l.policy.Limiter, now)
			if before != "" && l.policy.Address != "" && before != l.policy.Address {
				// Another receiver: what the breaker learned of the last one is not about it, and a corrected address
				// is to reach waiting events now.
				l.gate.Reset(now)
				s.tell(l, now)
				s.cfg.Store.SaveEndpointState(l.name, l.gate.State(), func(error) {})
			}
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
	// Crowded tells that it waits for a slot, all of which others hold or may have.
	Crowded bool
	Latency quantile.Summary
	latency *quantile.Window
}

// Endpoints lists every endpoint that has a line, with its percentiles. The order is not defined.
func (s *Scheduler) Endpoints() []EndpointView { return withLatency(s.Gates()) }

// Gates is Endpoints without percentiles, which cost most.
func (s *Scheduler) Gates() []EndpointView {
	var views []EndpointView
	s.ask(func() {
		now := s.clock.now()
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
			views = append(views, l.view(s.clock.now()))
		}
	})
	if len(views) == 0 {
		return EndpointView{}, false
	}
	return withLatency(views)[0], true
}

func (l *line) view(now time.Time) EndpointView {
	return EndpointView{Name: l.name, Configured: l.configured, Gate: l.gate.Snapshot(now), InFlight: l.inFlight, InFlightPending: l.inFlight - l.retrying, Crowded: l.crowded || l.queued && l.s.free() <= 0, latency: l.latency}
}

// withLatency computes percentiles outside the scheduler's goroutine, since that may mean sorting 100,000 samples.
func withLatency(views []EndpointView) []EndpointView {
	now := time.Now()
	for i := range views {
		views[i].Latency = views[i].latency.Quantiles(now)
	}
	return views
}

// Slots returns the half hours of the last 24 h that have samples, of one endpoint, or of all for an empty name.
func (s *Scheduler) Slots(endpoint string) map[string][]quantile.Slot {
	windows := map[string]*quantile.Window{}
	s.ask(func() {
		for name, l := range s.lines {
			if endpoint == "" || name == endpoint {
				windows[name] = l.latency
			}
		}
	})
	out, now := make(map[string][]quantile.Slot, len(windows)), time.Now()
	for name, w := range windows { // outside the scheduler's goroutine, as in withLatency
		out[name] = w.Slots(now)
	}
	return out
}

// LetGo gives an endpoint's waiting events back to the store for a moment, so that a person can act on one of them.
func (s *Scheduler) LetGo(endpoint string) {
	s.ask(func() {
		if l, ok := s.lines[endpoint]; ok {
			l.letGo()
			s.setWake(l, s.clock.now().Add(rereadPause))
		}
	})
}

// Expired is told of events that the store gave up by itself because their TTL passed. It does not block.
func (s *Scheduler) Expired(list []*spool.Lease) {
	s.box.post(func() {
		for _, lease := range list {
			s.cfg.Observer.Told(Told{Lease: lease, Verdict: spool.VerdictDead, Reason: spool.ReasonExpired, Recorded: s.clock.now()})
		}
	})
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
			l := s.line(sample.Endpoint)
			l.latency.Add(sample.At, sample.Duration)
			l.lastP95, l.samples = time.Time{}, 0 // taken anew at the next outcome
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
		l, now := s.line(endpoint), s.clock.now()
		f(l.gate, now)
		s.tell(l, now)
		s.cfg.Store.SaveEndpointState(endpoint, l.gate.State(), func(err error) { saved <- err })
		s.enqueue(l)
	})
	select {
	case err := <-saved:
		if err != nil {
			return fmt.Errorf("the change is in force, but is lost at a restart since it could not be stored: %w", err)
		}
		return nil
	case <-s.done:
		return spool.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweep forgets ad hoc lines that have had nothing to do for a while.
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
		if strings.Contains(name, "://") && l.forgettable(now, keep) {
			l.latency.Close()
			s.cfg.Store.SaveEndpointState(name, nil, func(error) {})
			delete(s.lines, name)
		}
	}
}

// forgettable tells that a line has no work, and a gate that has nothing to say any more: one that is as new, or whose
// last word is older than the longest cooldown. A pause and a limit in use are never forgotten.
func (l *line) forgettable(now time.Time, keep time.Duration) bool {
	idle := now.Sub(l.lastUsed)
	if idle < keep || l.inFlight > 0 || l.queued || l.crowded || l.reserving || l.fresh.len()+l.backlog.len() > 0 || !l.diskDue.IsZero() {
		return false
	}
	s := l.gate.Snapshot(now)
	return !s.Paused && !limitsInUse(s) && (asNew(s) || idle > l.policy.Limiter.Breaker.MaxCooldown)
}

func limitsInUse(s limiter.Snapshot) bool {
	return slices.ContainsFunc(s.Limits, func(u bucket.Use) bool { return u.Used > 0 })
}

// asNew tells that a new gate would be the same.
func asNew(s limiter.Snapshot) bool {
	return s.Breaker == breaker.Closed && s.ConsecutiveFailures == 0 && !s.Paused && !s.Throttled &&
		s.Concurrency == s.MaxConcurrency && !limitsInUse(s)
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
	s.crew.all.Wait()
	s.cut(errStopped)
}

// States gives every gate's state with no send reserved, for the last write of a clean stop. Call it after Stop.
func (s *Scheduler) States() map[string][]byte {
	<-s.done
	states := make(map[string][]byte, len(s.lines))
	for name, l := range s.lines {
		l.gate.GiveBack()
		if !asNew(l.gate.Snapshot(s.clock.now())) {
			states[name] = l.gate.State()
		}
	}
	return states
}
