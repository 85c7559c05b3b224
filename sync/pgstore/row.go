package pgstore

import "time"

// Row is one thing that happened to an event, in the form in which the central store keeps it.
type Row struct {
	EventID string
	// CreatedAt is when the event was accepted: with the instance and the ID it names the event.
	CreatedAt time.Time
	// Version ascends with each change of the event.
	Version uint64
	// EndpointName is the configured name, or the origin; EndpointURL has neither query nor user info.
	EndpointName, EndpointURL string
	// Status is one of pending, in_flight, failed, delivered, dead_letter; empty where the event was removed from its
	// spool, by a person or past its retention.
	Status string
	// Attempt is nil where no attempt was made.
	Attempt     *Attempt
	Attempts    int
	MaxAttempts int
	NextAttempt time.Time
	DeliveredAt time.Time
	DeadReason  string
	// DeadAt is when the event was given up. Zero: at the end of the attempt, or now where none was made.
	DeadAt time.Time
	// Payload is the body, where it may leave the machine; else nil.
	Payload []byte
}

// refOf is the row's endpoint as it is stored.
func refOf(r *Row) endpointRef {
	ref := endpointRef{text(r.EndpointName, maxKey), text(r.EndpointURL, maxKey)}
	if ref.name == "" {
		ref.name = ref.url
	}
	return ref
}

// Attempt is one try of an event.
type Attempt struct {
	Number     int
	EndedAt    time.Time
	Duration   time.Duration
	StatusCode int    // 0: no response headers came
	Error      string // the failure's class; empty: it delivered
}

// sample tells whether the attempt's duration is one of the endpoint's: response headers came, or none in time.
func (a *Attempt) sample() bool { return a.StatusCode != 0 || a.Error == "timeout" }

// The states in which a row can arrive.
const (
	statusDelivered = "delivered"
	statusDead      = "dead_letter"
)

// known are the status words that the table takes.
func known(status string) bool {
	switch status {
	case "pending", "in_flight", "failed", statusDelivered, statusDead:
		return true
	}
	return false
}
