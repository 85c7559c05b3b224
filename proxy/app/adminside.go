package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"postern/configs"
	"postern/limiter"
	"postern/proxy/admin"
	"postern/proxy/guard"
	"postern/proxy/ingest"
	"postern/proxy/scheduler"
	"postern/proxy/server"
	"postern/proxy/ui"
	"postern/spool"
)

func (a *app) buildIngest() {
	own := []string{a.listenAddr(1)}
	if probes := a.listenAddr(2); probes != "" {
		own = append(own, probes)
	}
	a.ingest = ingest.New(
		ingest.Config{MaxEventBytes: a.cfg.Spool.MaxEventBytes, Version: a.options.Version, Listen: []string{a.listenAddr(0)}, OwnAddrs: own},
		ingest.Parts{
			Guard: a.guard(a.cfg.Listen, 0, "Postern-Token"), Book: a.book, Spool: a.spool, Waiters: a.waiters, Observer: a.metrics,
			Watch: server.Watch,
		})
	a.servers = append(a.servers, server.New(server.Config{
		Name: "ingest", Handler: a.ingest, Logger: a.log, Limits: server.Ingest, MaxConnections: a.cfg.Listen.MaxConnections,
		WatchOnDemand: true, // ingest watches for Prefer: wait alone
		Refused:       func() { a.metrics.Rejected(tooManyConnections) },
	}))
}

func (a *app) buildAdmin() {
	a.profiled.Store(a.cfg.Pprof)
	var refused admin.Refused // nil without sync: rows put back would wait for nobody
	if a.cfg.Sync.DSN != "" {
		refused = a.spool
	}
	a.admin = admin.New(admin.Parts{
		Spool: spoolSide{a.spool, a.scheduler}, Endpoints: endpointSide{a}, Metrics: a.metrics,
		Guard: a.guard(a.cfg.Admin, 1, ""), Logger: a.log, Ready: a.notReady, Policies: a.shownPolicy, Answers: a.answers, Sync: a.syncStatus,
		Refused: refused, Keys: a.spool, Profiles: a.profiled.Load, Minutes: a.spool, Latency: a.latency, Page: ui.Dashboard(), InstanceID: a.spool.InstanceID(), Version: a.options.Version,
	})
	anybody := guard.New(guard.Config{AnyHost: true})
	probes := []string{"/healthz", "/readyz"}
	a.servers = append(a.servers,
		server.New(server.Config{
			Name: "admin", Handler: a.admin, Logger: a.log, Limits: server.Admin, MaxConnections: a.cfg.Admin.MaxConnections, Always: probes,
		}),
		server.New(server.Config{
			Name: "probes", Handler: admin.NewProbes(anybody, a.notReady, a.metrics), Logger: a.log, Limits: server.Admin,
			MaxConnections: a.cfg.Probes.MaxConnections, Always: probes,
		}))
}

// tooManyConnections is the reason that is counted for what ingest's server refuses before ingest sees it.
const tooManyConnections = "too_many_connections"

func (a *app) listenAddr(i int) string { return addressOf(a.listeners[i]) }

// guard decides who may come in by a listener.
func (a *app) guard(l configs.Listener, i int, tokenHeader string) *guard.Guard {
	network, _ := l.Split()
	cfg := guard.Config{Listen: []string{l.Address, a.listenAddr(i)}, AnyHost: network == "unix", TokenHeader: tokenHeader}
	if l.TokenFile != "" {
		cfg.Tokens = guard.TokenFile(l.TokenFile, l.Token)
	}
	return guard.New(cfg)
}

// spoolSide is the spool as people see it: an event is in flight while its attempt runs, not while it waits in memory.
type spoolSide struct {
	*spool.Spool
	scheduler *scheduler.Scheduler
}

// Stats counts exclusively: an event in flight is that alone.
func (s spoolSide) Stats() spool.Stats {
	stats := s.Spool.Stats()
	pending, failed := s.scheduler.InFlight()
	stats.Pending, stats.Failed = max(0, stats.Pending-pending), max(0, stats.Failed-failed)
	stats.Leased = pending + failed
	return stats
}

// Retry makes an event due now.
func (s spoolSide) Retry(ctx context.Context, id string) error {
	return s.whileWaiting(id, func() error { return s.Spool.Retry(ctx, id) })
}

// Delete drops an event.
func (s spoolSide) Delete(ctx context.Context, id string) error {
	return s.whileWaiting(id, func() error { return s.Spool.Delete(ctx, id) })
}

// whileWaiting does what the spool refuses for an event that is out. One that waits in the scheduler's memory, and is
// not on its way, is asked back first.
func (s spoolSide) whileWaiting(id string, do func() error) error {
	err := do()
	if !errors.Is(err, spool.ErrBusy) {
		return err
	}
	v, found := s.Spool.Get(id, false)
	if found != nil || s.scheduler.Running(v.Seq) {
		return err
	}
	s.scheduler.LetGo(v.Endpoint)
	return do()
}

// endpointSide is what the admin API asks about endpoints.
type endpointSide struct{ a *app }

// List has every endpoint that is configured, has a line, or has something in the spool.
func (e endpointSide) List() []admin.EndpointView {
	running := map[string]scheduler.EndpointView{}
	names := endpointNames(e.a.book.config())
	for _, v := range e.a.scheduler.Endpoints() {
		running[v.Name] = v
		names = append(names, v.Name)
	}
	for _, c := range e.a.spool.Endpoints() {
		names = append(names, c.Endpoint)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	views := make([]admin.EndpointView, 0, len(names))
	for _, name := range names {
		views = append(views, e.view(name, running[name]))
	}
	return views
}

// Get finds one of those.
func (e endpointSide) Get(name string) (admin.EndpointView, bool) {
	running, ok := e.a.scheduler.Endpoint(name)
	_, configured := e.a.book.config().Endpoint(name)
	counts := e.a.spool.Counts(name)
	if !ok && !configured && counts.Pending+counts.Failed+counts.DeadLetter == 0 {
		return admin.EndpointView{}, false
	}
	return e.view(name, running), true
}

func (e endpointSide) view(name string, r scheduler.EndpointView) admin.EndpointView {
	policy, _ := e.a.shownPolicy(name)
	configured, isConfigured := e.a.book.config().Endpoint(name)
	if r.Name == "" { // nothing was ever sent there: its gate is as a new one
		p, _ := e.a.book.Policy(name)
		r.Gate = limiter.New(p.Limiter, time.Now()).Snapshot(time.Now())
	}
	counts := e.a.spool.Counts(name)
	view := admin.EndpointView{
		Name: name, Configured: isConfigured, URL: cmp.Or(policy.URL, name),
		Breaker: admin.BreakerView{
			State: r.Gate.Breaker.String(), ConsecutiveFailures: r.Gate.ConsecutiveFailures, FailureThreshold: r.Gate.Threshold,
			OpenedAt: r.Gate.OpenedAt, Cooldown: r.Gate.Cooldown,
		},
		Paused: r.Gate.Paused, PauseReason: r.Gate.PauseReason, PausedAt: r.Gate.PausedAt,
		Limiter: limiterView(r.Gate, r.Crowded), Queue: queueView(counts, r), ShareFull: counts.Full,
		P50: r.Latency.P50, P95: r.Latency.P95, P99: r.Latency.P99, Samples: r.Latency.Count,
	}
	if isConfigured {
		view.URL, view.TLSError = configured.URL.WithoutQuery(), e.a.book.tlsProblem(name)
	}
	return view
}

func queueView(counts spool.EndpointCounts, r scheduler.EndpointView) admin.QueueView {
	return admin.QueueView{
		Pending: max(0, counts.Pending-int64(r.InFlightPending)), AwaitingRetry: max(0, counts.Failed-int64(r.InFlight-r.InFlightPending)),
		InFlight: int64(r.InFlight), DeadLetter: counts.DeadLetter,
	}
}

// heldBySlots is held_by where what lacks is a slot of those that all endpoints share.
const heldBySlots = "slots"

func limiterView(s limiter.Snapshot, crowded bool) admin.LimiterView {
	view := admin.LimiterView{
		ThrottledUntil: s.ThrottledUntil, NextAllowed: s.NextAllowed, HeldBy: string(s.Reason),
		Concurrency: s.Concurrency, MaxConcurrency: s.MaxConcurrency,
	}
	if s.Reason == limiter.ReasonReserving {
		view.HeldBy = "" // a commit away, and only when there is something to send
	}
	if view.HeldBy == "" && crowded {
		view.HeldBy = heldBySlots
	}
	for _, use := range s.Limits {
		view.Limits = append(view.Limits, admin.LimitView{Limit: use.N, Window: use.Per, Used: use.Used})
	}
	return view
}

// Pause stops an endpoint by hand.
func (e endpointSide) Pause(ctx context.Context, name string) error {
	return e.a.scheduler.Pause(ctx, name, "paused by hand")
}

// Resume lets it go on.
func (e endpointSide) Resume(ctx context.Context, name string) error {
	return e.a.scheduler.Resume(ctx, name)
}

// Reset closes its breaker.
func (e endpointSide) Reset(ctx context.Context, name string) error {
	return e.a.scheduler.Reset(ctx, name)
}

// shownPolicy is what lists of events show of an endpoint's policy.
func (a *app) shownPolicy(name string) (admin.Policy, bool) {
	cfg := a.book.config()
	if e, ok := cfg.Endpoint(name); ok {
		return admin.Policy{URL: e.URL.WithoutQuery(), MaxAttempts: e.Policy.Retry.MaxAttempts}, true
	}
	p, ok := a.book.Policy(name)
	return admin.Policy{MaxAttempts: p.Retry.Attempts()}, ok
}

// answers reads the attempt history for the analysis of dead letters.
func (a *app) answers(since time.Time, yield func(endpoint string, at time.Time, statusCode int) bool) error {
	return a.spool.Samples(since, func(s spool.Sample) bool {
		return s.StatusCode == 0 || yield(s.Endpoint, s.StartedAt, s.StatusCode)
	})
}

// latency is what the scheduler's windows know of the last 24 hours, by the half hour.
func (a *app) latency(endpoint string) map[string][]admin.LatencySlot {
	out := map[string][]admin.LatencySlot{}
	for name, slots := range a.scheduler.Slots(endpoint) {
		list := make([]admin.LatencySlot, 0, len(slots))
		for _, s := range slots {
			list = append(list, admin.LatencySlot{Start: s.Start, P50: s.P50, P95: s.P95, Count: s.Count})
		}
		out[name] = list
	}
	return out
}
