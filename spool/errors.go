package spool

import "errors"

// Errors of opening.
var (
	// ErrInUse means that another process holds the directory's lock.
	ErrInUse = errors.New("the spool is in use by another process")
	// ErrNewerFormat means that a newer Postern wrote the spool; this one leaves it untouched.
	ErrNewerFormat = errors.New("the spool was written by a newer Postern")
	// ErrNotSpool means that the file is whole but is not a spool.
	ErrNotSpool = errors.New("the file is not a Postern spool")
	// ErrKeyMissing means that records are encrypted with a key that was not given; nothing was changed.
	ErrKeyMissing = errors.New("a key is missing")
)

// Errors of Append. In all of them but ErrUnknownOutcome nothing was stored.
var (
	// ErrFull means that the spool has no room for an event of this size.
	ErrFull = errors.New("the spool is full")
	// ErrEndpointFull means that this endpoint has used up its share of the spool.
	ErrEndpointFull = errors.New("the endpoint's share of the spool is full")
	// ErrUnwritable means that the disk refused the commit.
	ErrUnwritable = errors.New("the spool cannot be written")
	// ErrReused means that the event ID or idempotency key was seen with a different request.
	ErrReused = errors.New("the key was used for a different request")
	// ErrIDTaken means that the explicit event ID belongs to an event of another endpoint.
	ErrIDTaken = errors.New("the event ID is taken by another endpoint's event")
	// ErrUnknownOutcome means that the commit took too long to wait for: the event may or may not be stored.
	ErrUnknownOutcome = errors.New("the commit did not end in time; the event may or may not be stored")
	// ErrClosed means that the spool is closing.
	ErrClosed = errors.New("the spool is closed")
)

// ErrLeaseEnded means that a lease was ended before, or was never given out.
var ErrLeaseEnded = errors.New("the lease was ended before")

// Errors of the calls that name one event.
var (
	// ErrNotFound means that the spool has no trace of the event.
	ErrNotFound = errors.New("no such event")
	// ErrBusy means that an attempt is running: ask again when it has ended.
	ErrBusy = errors.New("an attempt is in flight")
	// ErrDelivered means that the event was delivered and has no payload left to send.
	ErrDelivered = errors.New("the event was delivered already")
	// ErrNotDead means that the event is no dead letter, or none any more.
	ErrNotDead = errors.New("the event is not a dead letter")
)
