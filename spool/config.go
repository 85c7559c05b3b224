package spool

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"postern/spool/internal/keyring"
)

// Config says where the spool is and how much it may hold. The zero value is not usable; start from Defaults.
type Config struct {
	// Dir holds the spool's files. It is created with mode 0700 where there is none.
	Dir string
	// MaxBytes bounds the file. MaxEventBytes bounds one event's body.
	MaxBytes, MaxEventBytes int64
	// HistoryMaxBytes bounds summaries, their attempts and the outbox together, OutboxMaxBytes the outbox alone. The
	// oldest rows are dropped first. No more than an eighth of MaxBytes is ever used for history.
	HistoryMaxBytes, OutboxMaxBytes int64
	// MaxEndpointShare of MaxBytes, between 0 and 1, is what one endpoint's events may fill.
	MaxEndpointShare float64
	// DedupeWindow is how long a key is remembered, at most an eighth of MaxBytes of keys.
	DedupeWindow time.Duration
	// DeliveredRetention is how long the summary of a delivered event stays, DeadLetterRetention how long a dead letter.
	DeliveredRetention, DeadLetterRetention time.Duration
	// Outbox makes the spool keep a row of everything that happens, for a central store.
	Outbox bool
	// OutboxBodies puts the body into the row of an event's acceptance, since a delivery removes it from everywhere else. A
	// body that the outbox could never hold is left out.
	OutboxBodies bool
	// Keys encrypt targets, headers, bodies and kept answers, 32 bytes each, the newest first: that one is used for what is
	// written, all of them for what is read. None: nothing is encrypted. SetKeys changes them while the spool is open.
	Keys [][]byte
	// Logger gets the few things that an operator must know. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Committed is called by the committer after each commit, in order: it must not block. Nil: no leases are handed out
	// but by Lease.
	Committed func([]Committed)
	// Expired is told of events whose TTL passed while they waited, after the commit that made them dead letters. They are
	// not leased: there is nothing to end; their Event has neither headers nor body. It is called by the committer and must not block. May be nil.
	Expired func([]*Lease)
	// Running tells whether an attempt of a leased event is under way: only then do people see it as in flight, and not while
	// it waits in its holder's memory. It is called with locks held, and must neither block nor call the spool. Nil: while it
	// is leased.
	Running func(seq uint64) bool
	// Damaged is told once that bbolt met something in the file that cannot be. Nothing is written from then on, and the
	// next Open salvages: whoever runs the spool should close it and start anew. It must not block. May be nil.
	Damaged func(error)
	// ObserveCommit is told how long each commit took. May be nil.
	ObserveCommit func(time.Duration)
}

// Committed tells what a commit made due.
type Committed struct {
	Endpoint string
	// DueAt is when the event is due.
	DueAt time.Time
	// Lease is the event itself, leased to the receiver, who ends it with Finish or Release. Nil only says that Endpoint
	// has something due at DueAt: a delayed event, a replay, an event released by a person.
	Lease *Lease
}

const (
	mib = 1 << 20
	// minBytes leaves room for the reserve, the buckets and a few events.
	minBytes = mib
)

// Defaults returns the contract's values, without Dir.
func Defaults() Config {
	return Config{
		MaxBytes:            1 << 30,
		MaxEventBytes:       mib,
		HistoryMaxBytes:     64 * mib,
		OutboxMaxBytes:      48 * mib,
		MaxEndpointShare:    0.5,
		DedupeWindow:        24 * time.Hour,
		DeliveredRetention:  24 * time.Hour,
		DeadLetterRetention: 720 * time.Hour,
	}
}

// Validate reports every value that cannot work, in the names of the configuration file.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Dir != "", "spool.dir is empty: name a directory on a local disk")
	check(c.MaxBytes >= minBytes, "spool.max_bytes is %d: at least %d is needed", c.MaxBytes, minBytes)
	check(c.MaxEventBytes > 0, "spool.max_event_bytes is %d: it must be positive", c.MaxEventBytes)
	check(c.MaxEventBytes <= c.MaxBytes/4, "spool.max_event_bytes is %d: at most a quarter of spool.max_bytes (%d) works",
		c.MaxEventBytes, c.MaxBytes/4)
	check(c.MaxEventBytes <= 256*mib, "spool.max_event_bytes is %d: at most 256MiB works", c.MaxEventBytes)
	check(c.HistoryMaxBytes >= 0, "spool.history_max_bytes is negative")
	check(c.OutboxMaxBytes >= 0, "sync.max_backlog_bytes is negative")
	check(c.MaxEndpointShare > 0 && c.MaxEndpointShare <= 1, "spool.max_endpoint_share is %v: it must be over 0 and at most 1",
		c.MaxEndpointShare)
	check(c.DedupeWindow >= 0, "spool.dedupe_window is negative")
	check(c.DeliveredRetention >= 0, "spool.delivered_retention is negative")
	check(c.DeadLetterRetention > 0, "spool.dead_letter_retention must be positive")
	_, err := keyring.New(c.Keys...)
	check(err == nil, "spool.encryption_key_files: %v", err)
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ObserveCommit == nil {
		c.ObserveCommit = func(time.Duration) {}
	}
	return c
}

// historyLimit is what history may fill: it must leave the spool to the events.
func (c Config) historyLimit() int64 { return min(c.HistoryMaxBytes, c.MaxBytes/8) }

func (c Config) outboxLimit() int64 { return min(c.OutboxMaxBytes, c.historyLimit()) }

// dedupeLimit bounds the remembered keys: a flood of keyed events must not fill the spool with memories.
func (c Config) dedupeLimit() int64 { return c.MaxBytes / 8 }

// endpointLimit is one endpoint's share in bytes.
func (c Config) endpointLimit() int64 { return int64(c.MaxEndpointShare * float64(c.MaxBytes)) }
