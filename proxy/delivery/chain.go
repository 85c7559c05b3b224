package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Config is what a Sender is made from.
type Config struct {
	// Log gets one line for a panic, and nothing else. It must not be nil.
	Log *slog.Logger
	// DrainTime is how long a body that nobody needs may take, so that the connection can be used again; 500 ms if zero.
	DrainTime time.Duration
}

// defaultDrain is long enough for the rest of an ordinary answer, and short enough that a body that trickles does not
// keep the endpoint's slot.
const defaultDrain = 500 * time.Millisecond

// link is one step of an attempt: it does its part, calls the next one, or ends the attempt by itself.
type link interface {
	send(ctx context.Context, a *attempt)
}

type sender struct{ first link }

// New assembles the chain. The order matters; each line says why its link stands where it does.
func New(cfg Config) Sender {
	var next link = newExchange(cmp.Or(cfg.DrainTime, defaultDrain)) // last: talks to the receiver
	next = &timeoutLink{next}                                        // around all that can wait, and nothing else
	next = &headerLink{next}                                         // just before sending: timestamp and signature are fresh
	next = &requestLink{next}                                        // first decides whether there is anything to send at all
	next = &recoverLink{next: next, log: cfg.Log}                    // around everything: a panic is one failed attempt
	return &sender{first: next}
}

// Send makes one attempt.
func (s *sender) Send(ctx context.Context, j *Job) Result {
	a := newAttempt(j)
	s.first.send(ctx, a)
	a.wire.close()
	return a.result
}
