package syncer

import (
	"context"
	"log/slog"
	"time"

	"postern/spool"
	"postern/sync/pgstore"
)

// Outbox is the spool's list of what happened; *spool.Spool is one.
type Outbox interface {
	Outbox(max int) (rows []spool.OutboxRow, more bool, err error)
	OutboxDone(upTo uint64) error
	OutboxRefuse(index uint64, cause string) error
}

// Writer takes rows; *pgstore.Store is one.
type Writer interface {
	Migrate(ctx context.Context) error
	Write(ctx context.Context, rows []pgstore.Row) error
	Close()
}

// Reporter takes what an instance says of itself; *pgstore.Store is one.
type Reporter interface {
	Heartbeat(ctx context.Context, h pgstore.Heartbeat) (pgstore.Beat, error)
	WriteHealth(ctx context.Context, list []pgstore.Health) error
	Maintain(ctx context.Context) (held bool, err error)
}

// Corrector lists what the store does not take for delivered, takes corrections, and says what it has not heard of;
// *pgstore.Store is one.
type Corrector interface {
	Undelivered(ctx context.Context, after pgstore.Undelivered, limit int) ([]pgstore.Undelivered, error)
	Correct(ctx context.Context, rows []pgstore.Row) error
	Unknown(ctx context.Context, rows []pgstore.Row) (places []int, err error)
}

// Store is the central store.
type Store interface {
	Writer
	Reporter
	Corrector
}

// Events looks an event up, and goes through those that are not delivered; *spool.Spool is one.
type Events interface {
	Get(id string, payload bool) (spool.View, error)
	Standing(from uint64, max int) (rows []spool.OutboxRow, next uint64, err error)
}

// Endpoint is what the configuration says of an endpoint.
type Endpoint struct {
	// URL has neither query nor user info. It is what the fleet knows the endpoint by.
	URL         string
	MaxAttempts int
}

// Snapshot is what an instance says of itself and its endpoints. Of the heartbeat, Lag, RejectedRows and Stopping are
// filled in by the syncer.
type Snapshot struct {
	Heartbeat pgstore.Heartbeat
	Health    []pgstore.Health
}

// Parts are what a syncer works with. Outbox, Open and Endpoint are needed.
type Parts struct {
	Outbox Outbox
	// Open makes a store, without waiting for a server. It is called at the start and after Reopen.
	Open func(ctx context.Context) (Store, error)
	// Endpoint finds an endpoint of the configuration; ok is false for one that left it. Ad hoc endpoints, whose name is
	// their origin, are asked for too, for the sake of MaxAttempts.
	Endpoint func(name string) (e Endpoint, ok bool)
	// Payload returns the body of an event if it may go to the store; nil means never.
	Payload func(row spool.OutboxRow) []byte
	// Snapshot may be nil: then there are neither heartbeats nor health.
	Snapshot func() Snapshot
	// Busy tells whether there are deliveries that a backlog must not slow down. Nil: there always are.
	Busy func() bool
	// Events may be nil: then what ended in rows that had to be dropped stays in the store as it was, and what was there
	// before there was an outbox is not told.
	Events Events
	// Logger is told when the store goes away and comes back. Nil: nothing is logged.
	Logger *slog.Logger
}

// Config says how often and how much. Zero values mean the defaults.
type Config struct {
	Interval  time.Duration // between looks at the outbox, 2 s
	BatchRows int           // in one transaction, 4000: two for each delivered event
	StopLimit time.Duration // for the last flush, 5 s
}

func (c Config) withDefaults() Config {
	if c.Interval <= 0 {
		c.Interval = 2 * time.Second
	}
	if c.BatchRows <= 0 {
		c.BatchRows = 4000
	}
	if c.StopLimit <= 0 {
		c.StopLimit = 5 * time.Second
	}
	return c
}

const (
	// maintainEvery is how often partitions and retention are looked after, by the one that has the lease.
	maintainEvery = time.Minute
	// healthEvery is how often the health of all endpoints is sent; changes are sent at every interval.
	healthEvery = time.Minute
)
