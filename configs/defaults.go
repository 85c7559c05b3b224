package configs

import (
	"log/slog"
	"slices"
	"time"

	"postern/proxy/target"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Defaults returns the configuration that an empty file has, without what the environment adds (sync.dsn).
func Defaults() *Config {
	return &Config{
		Listen:        Listener{Address: "127.0.0.1:8089", SocketMode: DefaultSocketMode, MaxConnections: 1024},
		Admin:         Listener{Address: "127.0.0.1:8090", SocketMode: DefaultSocketMode, MaxConnections: 256},
		Probes:        Listener{MaxConnections: 64},
		ShutdownGrace: 25 * time.Second, // below the 30 s after which Kubernetes kills
		Log:           Log{Level: slog.LevelInfo, Format: "json"},
		Concurrency:   256,
		Spool: Spool{
			Dir:                 "./postern-data",
			MaxBytes:            gib,
			MaxEventBytes:       mib,
			MaxEndpointShare:    0.5,
			HistoryMaxBytes:     64 * mib,
			DedupeWindow:        24 * time.Hour,
			DeliveredRetention:  24 * time.Hour,
			DeadLetterRetention: 30 * 24 * time.Hour,
		},
		Defaults: DefaultPolicy(),
		Targets:  Targets{AdHoc: true},
		Sync: Sync{
			Schema:          "postern",
			Interval:        2 * time.Second,
			Payloads:        "none",
			Retention:       30 * 24 * time.Hour,
			MaxBacklogBytes: 48 * mib,
		},
	}
}

// DefaultPolicy returns the policy that an endpoint has where nothing else is said.
func DefaultPolicy() Policy {
	return Policy{
		Timeout:     15 * time.Second,
		Concurrency: 32,
		Retry: Retry{
			MaxAttempts:   5,
			BaseDelay:     30 * time.Second,
			MaxDelay:      time.Hour,
			MaxRetryAfter: time.Hour,
		},
		Breaker: Breaker{
			FailureThreshold:     10,
			Cooldown:             5 * time.Minute,
			MaxCooldown:          time.Hour,
			SlowP95:              5 * time.Second,
			SlowFailureThreshold: 5,
		},
		Override: Override{MaxAttempts: 100, MaxTimeout: time.Minute},
		Burst:    1,
		HTTP2:    true,
		TLS:      TLS{MinVersion: "1.2"},
		Sign:     Sign{Scheme: SchemeNone},
	}
}

// The bounds that --dev puts on every delay, so that a developer sees retries and breakers at work within seconds.
const (
	devBaseDelay   = 500 * time.Millisecond
	devMaxDelay    = 5 * time.Second
	devCooldown    = 5 * time.Second
	devMaxCooldown = 30 * time.Second
)

// applyDev is the flag --dev. As every flag it beats the file, but it only ever shortens a delay.
func (c *Config) applyDev() {
	c.Dev = true
	c.Targets.AllowPrivate = true
	c.Log.Format = "text"
	c.Defaults.applyDev()
	for i := range c.Endpoints {
		c.Endpoints[i].Policy.applyDev()
	}
}

func (p *Policy) applyDev() {
	p.Retry.BaseDelay = min(p.Retry.BaseDelay, devBaseDelay)
	p.Retry.MaxDelay = min(p.Retry.MaxDelay, devMaxDelay)
	p.Retry.MaxRetryAfter = min(p.Retry.MaxRetryAfter, devMaxDelay)
	p.Retry.Schedule = slices.Clone(p.Retry.Schedule) // endpoints share what they inherit
	for i, delay := range p.Retry.Schedule {
		p.Retry.Schedule[i] = min(delay, devMaxDelay)
	}
	p.Breaker.Cooldown = min(p.Breaker.Cooldown, devCooldown)
	p.Breaker.MaxCooldown = min(p.Breaker.MaxCooldown, devMaxCooldown)
}

// lookup finds endpoints by name and by target. Load builds it.
type lookup struct {
	names    map[string]int
	prefixes map[string][]prefix // by origin, longest first
}

type prefix struct {
	target   target.Target
	endpoint int
}
