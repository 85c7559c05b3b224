package spool

import "time"

// State is where an event stands. The words are the contract's and appear unchanged in JSON, metrics and tables.
type State uint8

// The states of an event. InFlight is never stored: it means that a lease is out and, where Config.Running tells,
// that its attempt is under way. Leases live in memory alone, which is how a crash gives them back.
const (
	StatePending    State = iota + 1 // accepted, never tried
	StateInFlight                    // an attempt is under way
	StateFailed                      // tried, waiting for its next attempt
	StateDelivered                   // done; only its summary is kept
	StateDeadLetter                  // given up, kept for a person to look at
)

var stateNames = [...]string{"", "pending", "in_flight", "failed", "delivered", "dead_letter"}

// String returns the contract's word for the state, or "unknown".
func (s State) String() string {
	if int(s) < len(stateNames) && s > 0 {
		return stateNames[s]
	}
	return "unknown"
}

// ParseState is the reverse of String; ok is false for a word that names no state.
func ParseState(word string) (s State, ok bool) {
	for i, name := range stateNames {
		if i > 0 && name == word {
			return State(i), true
		}
	}
	return 0, false
}

// Header is one header field. Order and repetition are the application's and are kept.
type Header struct {
	Name, Value string
}

// Event is one outgoing request as the application handed it over. It never changes after Append.
type Event struct {
	// Seq is the spool's own number, ascending in order of acceptance. Append sets it.
	Seq uint64
	// ID is the immutable event ID that receivers see. ExplicitID tells that the application chose it.
	ID         string
	ExplicitID bool
	// Endpoint is the name that policy goes by: a configured name, or an origin such as https://partner.example.
	Endpoint string
	// Named tells how Target is read. True: Target is what followed /to/NAME, path and query as they came (may be
	// empty), to be joined to the url that the endpoint has when an attempt is made. False: Target is the absolute URL.
	Named  bool
	Target string
	Method string
	// Headers are the end-to-end headers to be sent, without Host and without Postern's own.
	Headers []Header
	Body    []byte
	// AcceptedAt is wall-clock time, kept to the microsecond.
	AcceptedAt time.Time
	// NotBefore holds the first attempt back; zero means at once.
	NotBefore time.Time
	// TTL, MaxAttempts and Timeout override policy for this event; zero means that policy decides.
	TTL         time.Duration
	MaxAttempts int
	Timeout     time.Duration
	// IdempotencyKey is used by Append for deduplication. Only a hash of it is stored; where the key is to be forgotten
	// with the event, it is found again as the value of the header Idempotency-Key, which Headers has if there is a key.
	IdempotencyKey string
}

// Attempt is one try of an event: at most one request on the wire.
type Attempt struct {
	Number     int           // 1, 2, …; goes on after a replay
	StartedAt  time.Time     // wall clock, to the microsecond
	Duration   time.Duration // monotonic: start to response headers, or to the failure
	StatusCode int           // 0 where no response headers came
	Error      string        // the failure's class (contract section 2); empty when delivered
}

// Answer is what is kept, locally only, of a failed attempt's response.
type Answer struct {
	StatusCode int
	Location   string // of a redirect
	Body       []byte // at most the first 1 KiB
}

// Progress is the part of an event's record that changes.
type Progress struct {
	// Attempts counts every attempt made. Charged counts those of the current budget: retry and replay start it anew.
	Attempts int
	Charged  int
	// Since is when the current budget and TTL began: acceptance, or the last retry or replay by a person.
	Since time.Time
	// NextAttempt is when the event is due.
	NextAttempt time.Time
	// History has the first attempt and the last 20, in order.
	History []Attempt
	// Answer is that of the last failed attempt, if it had one.
	Answer *Answer
	// DeadReason and DeadAt are set for dead letters: exhausted, expired, permanent or gone.
	DeadReason string
	DeadAt     time.Time
}

// Reasons for which an event becomes a dead letter; they are label values of postern_dead_letters_total.
const (
	ReasonExhausted = "exhausted" // all attempts were used up
	ReasonExpired   = "expired"   // its Postern-Ttl passed
	ReasonPermanent = "permanent" // an answer or a fault that no retry mends
	ReasonGone      = "gone"      // the receiver said 410
)
