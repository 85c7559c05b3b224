package app

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"postern/configs"
	"postern/limiter"
	"postern/limiter/breaker"
	"postern/limiter/bucket"
	"postern/proxy/delivery"
	"postern/proxy/egress"
	"postern/proxy/ingest"
	"postern/proxy/retry"
	"postern/proxy/scheduler"
	"postern/proxy/target"
	"postern/spool"
)

// errAdHoc refuses targets that are not in the configuration, where it says so.
var errAdHoc = errors.New("this Postern sends to configured endpoints only (targets.ad_hoc is false); use /to/NAME, or add the endpoint to the configuration")

// book knows every endpoint's policy in the configuration in force, and keeps for each the transport it sends by. It is
// where ingest, scheduler and delivery look a name up, so that a reload reaches all three at once.
type book struct {
	log     *slog.Logger
	inForce atomic.Pointer[edition] // read by every request and every attempt; set under mu

	mu    sync.Mutex // guards adHoc
	adHoc map[string]*entry
}

// edition is what is made of one configuration. It is never changed: a reload makes a new one.
type edition struct {
	cfg     *configs.Config
	nets    []netip.Prefix
	hosts   []string
	entries map[string]*entry // of the endpoints that it names
	log     *slog.Logger
}

// entry is one endpoint's compiled policy.
type entry struct {
	endpoint *delivery.Endpoint
	client   *egress.Client
	used     time.Time // of an ad hoc endpoint; guarded by book.mu
}

func newBook(cfg *configs.Config, log *slog.Logger) (*book, error) {
	b := &book{log: log}
	return b, b.reload(cfg)
}

// reload puts a new configuration in force, or returns an error and leaves the old one as it is.
func (b *book) reload(cfg *configs.Config) error {
	next := &edition{cfg: cfg, entries: make(map[string]*entry, len(cfg.Endpoints)), log: b.log}
	next.nets, next.hosts = egress.ParseAllow(cfg.Targets.Allow)
	for i := range cfg.Endpoints {
		e := &cfg.Endpoints[i]
		made, err := next.compile(e.Name, e.URL, e.Policy, true)
		if err != nil {
			return err
		}
		next.entries[e.Name] = made
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.inForce.Swap(next); old != nil {
		closeAll(old.entries)
	}
	closeAll(b.adHoc)
	b.adHoc = map[string]*entry{}
	return nil
}

func closeAll(entries map[string]*entry) {
	for _, e := range entries {
		e.client.Close()
	}
}

// find returns the entry of an endpoint; nil where its name is neither configured nor an origin that may be reached.
func (b *book) find(name string) *entry {
	if e, ok := b.inForce.Load().entries[name]; ok {
		return e
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.adHoc[name]; ok {
		e.used = time.Now()
		return e
	}
	origin, err := target.Parse(name)
	if err != nil {
		return nil
	}
	now := b.inForce.Load()
	e, err := now.compile(name, origin, now.cfg.Defaults, false)
	if err != nil {
		b.log.Error("making the transport of an ad hoc endpoint failed", "endpoint", origin.Origin(), "error", err)
		return nil
	}
	e.used = time.Now()
	b.adHoc[name] = e
	return e
}

const (
	// sweepEvery is how often transports are looked for that nobody needs any more.
	sweepEvery = 15 * time.Second
	// idleTransport is for how long an ad hoc endpoint's transport is kept that is not used, and idleTransportCrowd where
	// there are thousands: then it is hardly longer than the connections in it are.
	idleTransport      = 2 * time.Minute
	idleTransportCrowd = time.Minute
)

// sweep lets go of the transports of ad hoc endpoints that were not used for a while.
func (b *book) sweep() {
	b.mu.Lock()
	idle := idleTransport
	if len(b.adHoc) >= manyEndpoints {
		idle = idleTransportCrowd
	}
	b.mu.Unlock()
	giveBackRest(b.letGo(idle))
}

// letGo drops the ad hoc endpoints that were not used for so long, and tells how many those were.
func (b *book) letGo(idle time.Duration) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, e := range b.adHoc {
		if time.Since(e.used) > idle {
			e.client.Close()
			delete(b.adHoc, name)
			n++
		}
	}
	return n
}

// close ends the connections that nobody uses any more.
func (b *book) close() {
	b.letGo(-1)
	closeAll(b.inForce.Load().entries)
}

// compile turns a configured policy into what an attempt wants.
func (ed *edition) compile(name string, url target.Target, p configs.Policy, named bool) (*entry, error) {
	reach := ed.reach(named)
	options := egress.Options{
		Policy: reach, Concurrency: p.Concurrency,
		TLS: egress.TLS{
			CAFile: p.TLS.CAFile, CertFile: p.TLS.CertFile, KeyFile: p.TLS.KeyFile,
			MinVersion: p.TLS.Version(), ServerName: p.TLS.ServerName,
		},
		HTTP2: p.HTTP2, Log: ed.log.With("endpoint", name),
	}
	if ed.cfg.OutboundProxy != nil {
		options.Proxy = ed.cfg.OutboundProxy.String()
	}
	sign, err := signs(p.Sign)
	if err != nil {
		return nil, err
	}
	client, err := egress.New(options)
	if err != nil {
		return nil, err
	}
	e := &entry{client: client}
	e.endpoint = &delivery.Endpoint{
		Name: name, URL: url, Timeout: p.Timeout, Set: headers(p.Headers), BodyMatches: p.Success.BodyMatches,
		BodyRejects: p.Success.BodyRejects, Sign: sign, RoundTripper: client, Blocked: blocked(reach, url),
	}
	return e, nil
}

// blocked is the policy's word on a target. It depends on the host alone, which nearly always is the endpoint's own.
func blocked(reach egress.Policy, own target.Target) func(target.Target) error {
	verdict := reach.CheckTarget(own)
	return func(t target.Target) error {
		if t.Host == own.Host {
			return verdict
		}
		return reach.CheckTarget(t)
	}
}

// reach is where endpoints may lead: a named one's own origin was written down by the operator.
func (ed *edition) reach(named bool) egress.Policy {
	return egress.Policy{AllowPrivate: ed.cfg.Targets.AllowPrivate, AllowNets: ed.nets, AllowHosts: ed.hosts, OwnOrigin: named}
}

// tlsProblem is why an endpoint's TLS files as they are now are not in force.
func (b *book) tlsProblem(name string) string {
	e := b.inForce.Load().entries[name]
	if e == nil {
		b.mu.Lock()
		e = b.adHoc[name]
		b.mu.Unlock()
	}
	if e == nil {
		return ""
	}
	return e.client.TLSProblem()
}

func headers(h configs.Headers) []spool.Header {
	var set []spool.Header
	for _, field := range h.Set {
		set = append(set, spool.Header(field))
	}
	return set
}

func limits(p configs.Policy) limiter.Policy {
	l := limiter.Policy{
		Concurrency: p.Concurrency, Burst: p.Burst,
		Breaker: breaker.Config{
			FailureThreshold: p.Breaker.FailureThreshold, Cooldown: p.Breaker.Cooldown, MaxCooldown: p.Breaker.MaxCooldown,
			SlowP95: p.Breaker.SlowP95, SlowFailureThreshold: p.Breaker.SlowFailureThreshold,
		},
	}
	for _, limit := range p.Limits {
		l.Limits = append(l.Limits, bucket.Limit(limit))
	}
	return l
}

func retries(r configs.Retry) retry.Policy {
	return retry.Policy{
		MaxAttempts: r.MaxAttempts, BaseDelay: r.BaseDelay, MaxDelay: r.MaxDelay, MaxRetryAfter: r.MaxRetryAfter,
		Schedule: r.Schedule, HasSchedule: r.HasSchedule, Statuses: r.Statuses,
	}
}

// Policy is the scheduler's question. It makes no transport: many endpoints are asked about that nothing is sent to.
func (b *book) Policy(endpoint string) (scheduler.Policy, bool) {
	cfg := b.config()
	if e, ok := cfg.Endpoint(endpoint); ok {
		return scheduler.Policy{Limiter: limits(e.Policy), Retry: retries(e.Policy.Retry), Named: true, Address: e.URL.String()}, true
	}
	_, err := target.Parse(endpoint)
	return scheduler.Policy{Limiter: limits(cfg.Defaults), Retry: retries(cfg.Defaults.Retry)}, err == nil
}

func (b *book) config() *configs.Config { return b.inForce.Load().cfg }

// Named is ingest's question about /to/NAME.
func (b *book) Named(name string) (ingest.Endpoint, bool) {
	e, ok := b.config().Endpoint(name)
	if !ok {
		return ingest.Endpoint{}, false
	}
	return ingestEndpoint(e.Name, e.URL, e.Policy), true
}

// AdHoc is ingest's question about a target that the application wrote out. A target that a named endpoint's match
// covers goes by that endpoint's policy: the operator wrote its origin down, so that it may be private.
func (b *book) AdHoc(t target.Target) (ingest.Endpoint, error) {
	now := b.inForce.Load()
	if e, ok := now.cfg.Match(t); ok {
		return ingestEndpoint(e.Name, e.URL, e.Policy), now.reach(true).CheckTarget(t)
	}
	if !now.cfg.Targets.AdHoc {
		return ingest.Endpoint{}, errAdHoc
	}
	return ingestEndpoint(t.Origin(), target.Target{}, now.cfg.Defaults), now.reach(false).CheckTarget(t)
}

func ingestEndpoint(name string, url target.Target, p configs.Policy) ingest.Endpoint {
	return ingest.Endpoint{Name: name, URL: url, MaxAttempts: p.Override.MaxAttempts, MaxTimeout: p.Override.MaxTimeout}
}
