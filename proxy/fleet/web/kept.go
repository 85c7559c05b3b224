package web

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Answer is one question about the fleet.
type Answer struct {
	Name string
	// Fresh is how long an answer is used again. One that took long is used for longer: see busyShare.
	Fresh time.Duration
	Ask   func(context.Context) (any, error)
}

const (
	// failedFresh is how long a failure is told again before Postgres is asked anew.
	failedFresh = 2 * time.Second
	// busyShare keeps a question that takes long from being all that Postgres does: it is asked for one part of the
	// time in so many.
	busyShare = 20
	// patience bounds one question, whoever waits for it.
	patience = time.Minute
)

// kept is an answer with its last text.
type kept struct {
	Answer
	ctx context.Context // ends with the handler

	mu      sync.Mutex // guards what follows
	asking  chan struct{}
	text    []byte
	err     error
	outdate time.Time
}

// get returns the answer as JSON, from memory while it is fresh. Everybody who comes while Postgres is asked waits for
// the same answer; who gives up waiting does not end it for the others.
func (k *kept) get(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	if time.Now().Before(k.outdate) {
		defer k.mu.Unlock()
		return k.text, k.err
	}
	if k.asking == nil {
		k.asking = make(chan struct{})
		go k.ask(k.asking)
	}
	asking := k.asking
	k.mu.Unlock()
	select {
	case <-asking:
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.text, k.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (k *kept) ask(done chan struct{}) {
	ctx, cancel := context.WithTimeout(k.ctx, patience)
	defer cancel()
	began := time.Now()
	answer, err := k.Ask(ctx)
	var text bytes.Buffer
	if err == nil {
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		err = enc.Encode(map[string]any{"as_of": began.UTC(), "answer": answer})
	}
	fresh := max(k.Fresh, busyShare*time.Since(began))
	if err != nil {
		fresh = failedFresh
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text, k.err, k.outdate, k.asking = text.Bytes(), err, time.Now().Add(fresh), nil
	close(done)
}
