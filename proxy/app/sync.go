package app

import (
	"context"
	"sync"

	"postern/configs"
	"postern/limiter/breaker"
	"postern/proxy/redact"
	"postern/proxy/telemetry"
	"postern/spool"
	"postern/sync/pgstore"
	"postern/sync/syncer"
)

// buildSync makes the syncer where the configuration names a Postgres. It opens nothing: Postgres may be away.
func (a *app) buildSync() {
	if a.cfg.Sync.DSN == "" {
		return
	}
	a.syncDSN.Store(&a.cfg.Sync.DSN)
	a.keepBodies = a.cfg.Sync.Payloads == "all"
	a.syncer = syncer.New(syncer.Config{Interval: a.cfg.Sync.Interval}, syncer.Parts{
		Outbox: a.spool, Events: a.spool, Open: a.openStore, Endpoint: a.syncEndpoint, Payload: a.payload(), Snapshot: a.snapshot,
		Busy: func() bool { return a.spool.Stats().Leased > 0 }, Logger: a.log,
	})
}

// openStore makes the central store by the configuration in force, so that a reload can change the connection string.
func (a *app) openStore(ctx context.Context) (syncer.Store, error) {
	c := a.book.config().Sync
	store, err := pgstore.Open(ctx, pgstore.Config{
		DSN: *a.syncDSN.Load(), Schema: c.Schema, Instance: a.spool.InstanceID(), Version: a.options.Version, Labels: c.Labels,
		Retention: c.Retention, Logger: a.log, KeepBodies: a.keepBodies,
	})
	if err != nil {
		return nil, err
	}
	return countedStore{store, a.metrics}, nil
}

// countedStore counts what the central store has taken.
type countedStore struct {
	*pgstore.Store
	metrics *telemetry.Metrics
}

// Write is the store's.
func (s countedStore) Write(ctx context.Context, rows []pgstore.Row) error {
	err := s.Store.Write(ctx, rows)
	if err == nil {
		s.metrics.SyncRows(len(rows))
	}
	return err
}

// syncStatus is what GET status shows of the sync.
func (a *app) syncStatus() any {
	if a.syncer == nil {
		return syncer.Status{}
	}
	status := a.syncer.Status()
	if status.Error != nil {
		text := redact.Text(*status.Error)
		status.Error = &text
	}
	return status
}

// reloadSync takes a changed connection string over. Switching sync on or off needs a restart: the spool keeps an outbox
// from its opening on, or none.
func (a *app) reloadSync(next *configs.Config) (needsRestart []string) {
	if (a.syncer == nil) != (next.Sync.DSN == "") {
		return []string{"sync.dsn"}
	}
	if a.syncer != nil && *a.syncDSN.Load() != next.Sync.DSN {
		a.syncDSN.Store(&next.Sync.DSN)
		a.syncer.Reopen()
	}
	return nil
}

// startSync runs the syncer until the function it returns is called, which waits for the last flush.
func (a *app) startSync() (stop func()) {
	if a.syncer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.syncer.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (a *app) syncEndpoint(name string) (syncer.Endpoint, bool) {
	p, ok := a.shownPolicy(name)
	return syncer.Endpoint{URL: p.URL, MaxAttempts: p.MaxAttempts}, ok
}

// payload gives bodies away as far as sync.payloads asks for it. Nil: never.
func (a *app) payload() func(spool.OutboxRow) []byte {
	switch a.cfg.Sync.Payloads {
	case "dead_letters":
		return func(row spool.OutboxRow) []byte {
			if row.State != spool.StateDeadLetter {
				return nil
			}
			return a.bodyOf(row.EventID)
		}
	case "all":
		return func(row spool.OutboxRow) []byte {
			if row.Body != nil {
				return row.Body
			}
			return a.bodyOf(row.EventID)
		}
	}
	return nil
}

func (a *app) bodyOf(id string) []byte {
	v, err := a.spool.Get(id, true)
	if err != nil {
		return nil // it was delivered or deleted meanwhile
	}
	return v.Body
}

// snapshot is what this instance says of itself to the fleet.
func (a *app) snapshot() syncer.Snapshot {
	stats := spoolSide{a.spool, a.scheduler}.Stats()
	snap := syncer.Snapshot{Heartbeat: pgstore.Heartbeat{
		Pending: stats.Pending, AwaitingRetry: stats.Failed, InFlight: stats.Leased, Dead: stats.DeadLetter,
		OldestPending: stats.OldestPending, SpoolBytes: stats.FileBytes, BacklogRows: stats.OutboxRows, DroppedRows: stats.HistoryDropped,
	}}
	for _, e := range a.scheduler.Endpoints() {
		policy, _ := a.shownPolicy(e.Name)
		h := pgstore.Health{
			EndpointName: e.Name, EndpointURL: policy.URL, State: e.Gate.Breaker.String(), ConsecutiveFailures: e.Gate.ConsecutiveFailures,
			FailureThreshold: e.Gate.Threshold, Cooldown: e.Gate.Cooldown, Paused: e.Gate.Paused,
			P50: e.Latency.P50, P95: e.Latency.P95, P99: e.Latency.P99, Samples: e.Latency.Count,
		}
		if e.Gate.Breaker != breaker.Closed {
			h.OpenedAt = e.Gate.OpenedAt
		}
		snap.Health = append(snap.Health, h)
	}
	return snap
}
