package spool

import (
	"time"
)

// Lease is an event handed out for one attempt. It is ended by Finish or Release, exactly once. The holder may read
// Event and Progress, and must not change them.
type Lease struct {
	Event    *Event
	Progress Progress
	// Fresh tells that the event comes straight from its commit and was never read back from disk.
	Fresh bool

	version uint64 // of the event's progress: when it has moved on, the result is on disk
}

// Verdict is what becomes of a leased event after its attempt.
type Verdict uint8

// The verdicts.
const (
	VerdictDelivered Verdict = iota + 1 // headers and body leave the spool at once, a summary stays
	VerdictRetry                        // due again at Result.NextAttempt
	VerdictDead                         // kept as a dead letter with Result.Reason
)

// Result ends a lease: the attempt that was made and what follows, written in one transaction.
type Result struct {
	// Attempt is nil where an event is given up without one more request (its TTL passed while it waited).
	Attempt     *Attempt
	Verdict     Verdict
	NextAttempt time.Time
	// PlannedAt is the time, by the clock that NextAttempt is of, at which that was decided; zero where it is the clock that
	// the attempt's start is of.
	PlannedAt time.Time
	Reason    string  // for VerdictDead
	Answer    *Answer // of a failed attempt
	// EndpointState, where not nil, replaces the endpoint's stored limiter state in the same transaction.
	EndpointState []byte
	// Done is called once, by the committer's goroutine, after the commit: it must not block. The spool keeps a result
	// in memory and tries again until it is on disk; err is only ever ErrClosed (the result is lost with the process) or
	// ErrLeaseEnded (there was no such lease any more, and nothing was recorded).
	Done func(err error)
}

// AppendResult tells what Append did.
type AppendResult struct {
	// ID and Endpoint are those of the event that is in the spool: the first one's for a duplicate.
	ID        string
	Endpoint  string
	State     State
	Duplicate bool
}

// EndpointCounts is what the spool holds for one endpoint.
type EndpointCounts struct {
	Endpoint   string
	Pending    int64 // never tried, leased ones included
	Failed     int64 // tried, waiting, leased ones included
	DeadLetter int64
	Bytes      int64 // of events not yet finished and of dead letters
	// Full tells that an event as big as those that are there on average would be beyond the endpoint's share of the spool.
	Full bool
}

// Stats is a snapshot of the whole spool, cheap enough for every scrape.
type Stats struct {
	Pending, Failed, DeadLetter int64 // those in flight included in the first two
	Leased                      int64 // in flight, as Config.Running says
	Delivered                   int64 // summaries kept
	FileBytes                   int64 // the size of the files
	UsedBytes                   int64 // of them in use; the rest is free pages
	FreeBytes                   int64 // what events may still take of MaxBytes; the disk may have less
	MaxBytes                    int64 // what the files may use
	HistoryBytes                int64 // summaries, attempts and outbox
	HistoryDropped              int64 // rows dropped for history_max_bytes since the spool was made
	OutboxRows                  int64
	SetAside                    int64 // records that could not be decoded and were put apart
	SalvageLost                 int64 // records that the last salvage could not read
	OldestPending               time.Time
	// LastHour sums the sliding last hour, minute by minute; it survives restarts.
	LastHour HourStats
	// Full is true from the first event refused for want of room until one of its size fits again.
	Full bool
	// Writable is false while the disk refuses commits. Nothing new may be sent then.
	Writable bool
}

// HourStats are counts over the last hour.
type HourStats struct {
	Delivered int64         // events delivered
	Failed    int64         // attempts that failed
	Duration  time.Duration // the sum of the delivering attempts' durations
}

// View is one event as the admin API shows it. Event.Body and Event.Headers are nil unless they were asked for, and
// always for delivered events, whose payload has left the spool. Without them the Event.Target of a dead letter has no
// query, and of an absolute URL the origin alone.
type View struct {
	Event
	Progress
	State       State
	DeliveredAt time.Time
	Size        int64 // bytes of body
}

// Query selects events for List and the dead-letter calls. Zero fields select everything.
type Query struct {
	State    State  // zero: any
	Endpoint string // exact name
	Status   int    // last attempt's status code
	Error    string // last attempt's class, or the reason for which it is a dead letter
	Since    time.Time
	Until    time.Time // half open: Since <= t < Until; t is DeadAt for dead letters, else AcceptedAt
	Limit    int       // rows wanted, 1..1000
	Cursor   string    // opaque, from an earlier page
}

// Page is one page of a List, newest first. Next is empty on the last page.
type Page struct {
	Events []View
	Next   string
}

// OutboxRow is one thing that happened, for the central store, in the order in which it was committed.
type OutboxRow struct {
	Index    uint64 // ascending
	EventID  string
	Version  uint64 // ascending per event
	Endpoint string
	Named    bool
	Target   string // without query and user info; empty where only the endpoint may be shown
	// Deleted tells that a person dropped the event, or that a dead letter has outlived its retention: State is zero then,
	// and no other row of this event follows.
	Deleted  bool
	State    State
	Attempt  *Attempt // nil for an acceptance or a person's intervention
	Attempts int
	// MaxAttempts is the event's own override, zero where policy decides.
	MaxAttempts int
	AcceptedAt  time.Time
	NextAttempt time.Time
	DeliveredAt time.Time
	DeadReason  string
	// DeadAt is in the rows of Standing alone: in others it is the end of the attempt, or now.
	DeadAt time.Time
	// Body is the event's, in the row of its acceptance alone, and only with Config.OutboxBodies.
	Body []byte
}
