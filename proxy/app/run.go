package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"postern/configs"
	"postern/limiter/quantile"
	"postern/proxy/admin"
	"postern/proxy/delivery"
	"postern/proxy/ingest"
	"postern/proxy/scheduler"
	"postern/proxy/server"
	"postern/proxy/telemetry"
	"postern/spool"
	"postern/sync/syncer"
)

// app is one running Postern.
type app struct {
	options Options
	cfg     *configs.Config // the one in force; belongs to the goroutine of run
	level   *slog.LevelVar
	log     *slog.Logger
	lines   *logWriter

	book      *book
	metrics   *telemetry.Metrics
	spool     *spool.Spool
	scheduler *scheduler.Scheduler
	waiters   *waiters
	syncer    *syncer.Syncer         // nil without a Postgres
	syncDSN   atomic.Pointer[string] // the connection string in force
	// keepBodies says that bodies stay in Postgres whatever becomes of their events. Only a restart changes it.
	keepBodies bool
	stopSync   func()
	ingest     *ingest.Handler
	admin      *admin.Handler

	listeners [3]net.Listener // ingest, admin, probes
	servers   []*server.Server
	fatal     chan error // a server that ended by itself
	stopping  atomic.Bool
	profiled  atomic.Bool // admin.pprof in force
	workers   sync.WaitGroup

	reloadRefused atomic.Bool // by the last reload
}

// exactSamples bounds the samples kept one by one for all endpoints together: 16 bytes each. Beyond it, and beyond
// 100,000 of one endpoint, percentiles come from a sketch.
const exactSamples = 2_000_000

// build makes all parts and starts none but the spool, whose lock must be held before anything else is touched.
func (a *app) build(cfg *configs.Config) (err error) {
	a.cfg, a.fatal, a.waiters = cfg, make(chan error, 4), newWaiters()
	if a.book, err = newBook(cfg, a.log); err != nil {
		return err
	}
	a.metrics = telemetry.New(telemetry.Config{
		Version: a.options.Version, Source: telemetry.SourceFunc(a.gauges), RejectReasons: append(ingest.Reasons(), tooManyConnections),
	})
	a.metrics.Configured(endpointNames(cfg)...)
	a.scheduler = scheduler.New(scheduler.Config{
		Concurrency: cfg.Concurrency, Policies: a.book, Windows: quantile.NewPool(exactSamples),
		Sender:   &sender{book: a.book, waiters: a.waiters, log: a.log, chain: delivery.New(delivery.Config{Log: a.log})},
		Observer: &observer{log: a.log, metrics: a.metrics, book: a.book}, Logger: a.log,
	})
	// The spool tells the scheduler of its commits, so that it is opened second.
	if a.spool, err = spool.Open(a.spoolConfig()); err != nil {
		return err
	}
	a.scheduler.Attach(a.spool)
	if err := a.listen(); err != nil {
		return err
	}
	a.buildIngest()
	a.buildAdmin()
	a.buildSync()
	a.warn(cfg)
	return nil
}

func (a *app) warn(cfg *configs.Config) {
	for _, text := range Warnings(cfg) {
		a.log.Warn("the configuration is valid, but: " + text)
	}
}

func endpointNames(cfg *configs.Config) []string {
	var names []string
	for i := range cfg.Endpoints {
		names = append(names, cfg.Endpoints[i].Name)
	}
	return names
}

// SpoolConfig is the spool that a configuration describes, without those who listen to it.
func SpoolConfig(cfg *configs.Config) spool.Config {
	s := cfg.Spool
	return spool.Config{
		Dir: s.Dir, MaxBytes: s.MaxBytes, MaxEventBytes: s.MaxEventBytes, HistoryMaxBytes: s.HistoryMaxBytes,
		OutboxMaxBytes: cfg.Sync.MaxBacklogBytes, MaxEndpointShare: s.MaxEndpointShare, DedupeWindow: s.DedupeWindow,
		DeliveredRetention: s.DeliveredRetention, DeadLetterRetention: s.DeadLetterRetention, Keys: s.EncryptionKeys,
		Outbox: cfg.Sync.DSN != "", OutboxBodies: cfg.Sync.Payloads == "all",
	}
}

func (a *app) spoolConfig() spool.Config {
	c := SpoolConfig(a.cfg)
	c.Logger, c.ObserveCommit = a.log, a.metrics.Commit
	c.Committed, c.Expired, c.Running = a.scheduler.Committed, a.scheduler.Expired, a.scheduler.Running
	c.Damaged = func(err error) {
		select {
		case a.fatal <- err: // stop and exit 1: the next start salvages
		default:
		}
	}
	return c
}

func (a *app) listen() (err error) {
	for i, l := range []struct {
		what, key string
		listener  configs.Listener
	}{
		{"ingest", "listen", a.cfg.Listen}, {"admin", "admin.listen", a.cfg.Admin}, {"probes", "probes.listen", a.cfg.Probes},
	} {
		if l.listener.Address == "" {
			continue
		}
		if a.listeners[i], err = listen(l.what, l.key, l.listener); err != nil {
			return err
		}
	}
	return nil
}

// run starts what build made, waits for the end, and stops.
func (a *app) run(ctx context.Context, hup <-chan os.Signal) error {
	background, endBackground := context.WithCancel(context.Background())
	defer endBackground()
	a.start(background)
	if a.options.Ready != nil {
		a.options.Ready(Addrs{addressOf(a.listeners[0]), addressOf(a.listeners[1]), addressOf(a.listeners[2])})
	}
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.stop(endBackground, nil)
		case err := <-a.fatal:
			return a.stop(endBackground, err)
		case <-hup:
			a.reload()
		case <-sweep.C:
			a.book.sweep()
		}
	}
}

// start begins at the receiving end of each hand-over, so that nothing is handed to a part that does not run yet.
func (a *app) start(background context.Context) {
	began := time.Now()
	for name, state := range a.spool.EndpointStates() {
		a.scheduler.Restore(name, state)
	}
	a.workers.Go(a.scheduler.Run)
	var waiting []string
	for _, e := range a.spool.Endpoints() {
		if e.Pending+e.Failed > 0 {
			waiting = append(waiting, e.Endpoint)
		}
	}
	a.scheduler.Wake(waiting...)
	a.workers.Go(func() { a.rememberSamples(background, began) })
	a.stopSync = a.startSync()
	for i, server := range a.servers {
		ln := a.listeners[i]
		if ln == nil {
			continue
		}
		a.workers.Go(func() {
			if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				a.fatal <- err
			}
		})
	}
	a.log.Info("postern is ready", "version", a.options.Version, "instance_id", a.spool.InstanceID(),
		"listen", addressOf(a.listeners[0]), "admin_listen", addressOf(a.listeners[1]), "spool_dir", a.cfg.Spool.Dir, "waiting_endpoints", len(waiting))
}

// stop ends everything in order. The reason for each place in the order stands beside it.
func (a *app) stop(endBackground func(), cause error) error {
	a.log.Info("postern is stopping", "shutdown_delay", a.cfg.ShutdownDelay.String(), "shutdown_grace", a.cfg.ShutdownGrace.String())
	if cause == nil && a.cfg.ShutdownDelay > 0 {
		// The application beside us got its signal at the same moment: its last postbacks find the door open.
		<-time.After(a.cfg.ShutdownDelay)
	}
	// From here on: ingest says 503, probes say not ready, so that nobody hands over what nobody will take.
	a.stopping.Store(true)
	a.ingest.Stop(5 * time.Second)
	endBackground()
	a.admin.Close() // running replays end: what they have not replayed stays a dead letter
	// Delivery ends before the listeners do, so that readiness and status can be asked all the while.
	grace, cancel := context.WithTimeout(context.Background(), a.cfg.ShutdownGrace)
	a.scheduler.Stop(grace)
	cancel()
	a.ingest.Dismiss() // after the last attempt, whose answer a client may be waiting for
	for name, state := range a.scheduler.States() {
		a.spool.SaveEndpointState(name, state, func(error) {})
	}
	// After the last result, so that it goes along; before the spool, whose outbox it empties.
	a.stopSync()
	a.closeServers()
	// The spool is last: every part that could still have something to write has ended.
	limit, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	err := errors.Join(cause, a.spool.Close(limit))
	a.workers.Wait()
	a.book.close()
	a.log.Info("postern has stopped")
	return err
}

// closeServers lets requests that are being answered end: they wait for a commit at most.
func (a *app) closeServers() {
	limit, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i, server := range a.servers {
		if a.listeners[i] == nil {
			continue
		}
		wg.Go(func() {
			if server.Shutdown(limit) != nil {
				server.Close()
			}
		})
	}
	wg.Wait()
}

// abandon undoes a build that failed half-way.
func (a *app) abandon() error {
	for _, ln := range a.listeners {
		if ln != nil {
			ln.Close()
		}
	}
	if a.spool == nil {
		return nil
	}
	limit, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return a.spool.Close(limit)
}

// errCutOff keeps a file that was emptied by a full disk, or is missing for a moment, from taking limits, signatures and
// named endpoints out of force.
var errCutOff = errors.New("the file is not there, or has no key at all, and what is in force has some: " + configs.BlankAdvice)

// reload puts the configuration file in force again, whole or not at all.
func (a *app) reload() {
	next, err := configs.Load(a.options.Config)
	if err == nil && next.Blank && !a.cfg.Blank {
		err = fmt.Errorf("%s: %w", a.cfg.File, errCutOff)
	}
	if err == nil {
		err = a.spool.CheckKeys(next.Spool.EncryptionKeys)
	}
	if err == nil {
		err = a.book.reload(next)
	}
	a.reloadRefused.Store(err != nil)
	if err != nil {
		a.log.Error("the new configuration is not valid; the running configuration stays in force", "error", err)
		return
	}
	a.reloadKeys(next)
	restart := append(configs.RestartOnly(a.cfg, next), a.reloadSync(next)...)
	a.warn(next)
	a.level.Set(next.Log.Level)
	a.profiled.Store(next.Pprof)
	a.metrics.Configured(endpointNames(next)...)
	a.scheduler.Reconfigure(next.Concurrency)
	a.cfg = keepRestartOnly(a.cfg, next)
	giveBackRest(len(next.Endpoints))
	a.log.Info("configuration reloaded", "file", next.File, "needs_restart", restart)
}

// reloadKeys puts the spool's keys in force. They were checked: what can fail here is the disk.
func (a *app) reloadKeys(next *configs.Config) {
	limit, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := a.spool.SetKeys(limit, next.Spool.EncryptionKeys); err != nil {
		next.Spool.EncryptionKeys, next.Spool.EncryptionKeyFiles = a.cfg.Spool.EncryptionKeys, a.cfg.Spool.EncryptionKeyFiles
		a.log.Error("the spool's new keys could not be put in force: reload again once the disk can be written", "error", err)
	}
}

// keepRestartOnly is the new configuration as far as it is in force without a restart.
func keepRestartOnly(old, next *configs.Config) *configs.Config {
	merged := *next
	keys, files := next.Spool.EncryptionKeys, next.Spool.EncryptionKeyFiles
	merged.Spool, merged.Sync, merged.Log.Format = old.Spool, old.Sync, old.Log.Format
	merged.Spool.EncryptionKeys, merged.Spool.EncryptionKeyFiles = keys, files
	merged.Listen, merged.Admin, merged.Probes = old.Listen, old.Admin, old.Probes
	return &merged
}
