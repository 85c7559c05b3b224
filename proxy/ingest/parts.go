package ingest

import (
	"context"
	"time"

	"postern/proxy/guard"
	"postern/proxy/target"
	"postern/spool"
)

// Parts are whom a Handler works with.
type Parts struct {
	// Guard decides who may come in; nil means one for a loopback listener without a token.
	Guard *guard.Guard
	Book  Book
	Spool Spool
	// Waiters may be nil: then Prefer: wait gets its 202 at once.
	Waiters Waiters
	// Observer may be nil.
	Observer Observer
	// Watch gives a context that ends when a request's client leaves, and a function that ends the watch; ctx is the
	// request's, whose body has been read. Nil means that the request's context ends by itself, as net/http's does.
	Watch func(ctx context.Context) (context.Context, context.CancelFunc)
}

// Book knows the endpoints of the configuration in force and what may be reached without being named there.
type Book interface {
	// Named finds the endpoint of /to/NAME.
	Named(name string) (Endpoint, bool)
	// AdHoc finds the endpoint whose policy governs t: one that matches it, or one of its own named by its origin.
	// An error is a refusal; its text goes to the application, so that it must say why and repeat nothing of t.
	AdHoc(t target.Target) (Endpoint, error)
}

// Endpoint is what ingest needs to know of an endpoint.
type Endpoint struct {
	Name string
	// URL is a named endpoint's own, to find out whether it can be joined with what follows /to/NAME.
	URL target.Target
	// MaxAttempts and MaxTimeout bound what Postern-Max-Attempts and Postern-Timeout may ask for; zero means
	// DefaultMaxAttempts and DefaultMaxTimeout.
	MaxAttempts int
	MaxTimeout  time.Duration
}

// The bounds on overrides where an Endpoint has none.
const (
	DefaultMaxAttempts = 100
	DefaultMaxTimeout  = 60 * time.Second
)

// Spool keeps events. Append returns when the event is on disk, and within a time of its own.
type Spool interface {
	Append(ctx context.Context, e *spool.Event) (spool.AppendResult, error)
}

// Waiters tells how first attempts end.
type Waiters interface {
	// Wait registers interest in an event before it is spooled. The channel gives at most one Answer, after the
	// event's first attempt. The function ends the interest and is called in every case.
	Wait(eventID string) (<-chan Answer, func())
}

// Answer is how an event's first attempt ended.
type Answer struct {
	// Delivered tells that the attempt counts as a success; the rest is then what the receiver said.
	Delivered bool
	Status    int
	// Headers are the receiver's, as they came: hop-by-hop ones are dropped here.
	Headers []spool.Header
	Body    []byte
	// TooBig tells that Body is not all of it.
	TooBig bool
}

// Observer counts. The reasons of Rejected are those that Reasons lists.
type Observer interface {
	Accepted(endpoint string)
	Rejected(reason string)
}

type noObserver struct{}

func (noObserver) Accepted(string) {}
func (noObserver) Rejected(string) {}
