package app

import (
	"time"

	"postern/proxy/telemetry"
	"postern/spool"
)

// notReady gives the reasons why nothing should be handed over now.
func (a *app) notReady() []string {
	return a.reasons(a.spool.Stats())
}

func (a *app) reasons(stats spool.Stats) []string {
	var reasons []string
	if a.stopping.Load() {
		reasons = append(reasons, "postern is stopping")
	}
	if !stats.Writable {
		reasons = append(reasons, "the spool cannot be written: events are refused and nothing is sent until it can (the log says why)")
	}
	if stats.Full {
		reasons = append(reasons, "the spool is full: not every event fits, smaller ones may, and deliveries go on")
	}
	return reasons
}

// gauges is the state of things at a scrape.
func (a *app) gauges() telemetry.Gauges {
	stats := spoolSide{a.spool, a.scheduler}.Stats()
	g := telemetry.Gauges{
		Pending: stats.Pending, InFlight: stats.Leased, Failed: stats.Failed, Delivered: stats.Delivered, DeadLetter: stats.DeadLetter,
		Ready: len(a.reasons(stats)) == 0, Writable: stats.Writable, Full: stats.Full, Concurrency: a.book.config().Concurrency,
		ReloadRefused: a.reloadRefused.Load(),
		SpoolBytes:    stats.FileBytes, FreeBytes: stats.FreeBytes, MaxBytes: stats.MaxBytes, SalvageLost: stats.SalvageLost, HistoryDropped: stats.HistoryDropped, SetAside: stats.SetAside,
	}
	if a.syncer != nil {
		status := a.syncer.Status()
		g.SyncLag, g.SyncRejected = time.Duration(status.LagSeconds*float64(time.Second)), status.RejectedRows
	}
	if !stats.OldestPending.IsZero() {
		g.OldestPending = time.Since(stats.OldestPending)
	}
	if a.lines != nil {
		g.LogDropped = a.lines.dropped.Load()
	}
	g.Endpoints = a.endpointGauges()
	return g
}

func (a *app) endpointGauges() []telemetry.EndpointGauges {
	waiting := map[string]int64{}
	for _, c := range a.spool.Endpoints() {
		waiting[c.Endpoint] = c.Pending + c.Failed
	}
	var list []telemetry.EndpointGauges
	known := map[string]bool{}
	for _, e := range a.scheduler.Gates() {
		known[e.Name] = true
		list = append(list, telemetry.EndpointGauges{
			Endpoint: e.Name, Breaker: telemetry.ParseBreakerState(e.Gate.Breaker.String()), Paused: e.Gate.Paused,
			Waiting: max(0, waiting[e.Name]-int64(e.InFlight)),
		})
	}
	for _, name := range endpointNames(a.book.config()) {
		if !known[name] { // nothing was ever sent there
			list = append(list, telemetry.EndpointGauges{Endpoint: name, Waiting: waiting[name]})
		}
	}
	return list
}
