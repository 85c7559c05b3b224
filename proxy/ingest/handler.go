// Package ingest takes an application's outgoing requests and answers once they are safe on disk.
//
// It promises that what goes in can come out unchanged: path and query byte for byte, header values and bodies as they
// came. It says 202 only after Spool.Append has, and spools nothing of a request that it refuses. Every refusal says what
// to do, and none repeats a query, user info, a header's value or a body. It writes no log line per request.
//
// It leaves out what a target may be (Book knows the policy), sending (the spool hands events on) and the transport
// to the application (package server). The Handler must be a server's Handler as it is: http.ServeMux
// cleans paths and redirects, which would change or lose the target.
package ingest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"postern/proxy/guard"
	"postern/spool"
)

// Config is what ingest needs to know. Parts has whom it works with.
type Config struct {
	// MaxEventBytes bounds a body; a larger one is refused with 413. Zero means DefaultMaxEventBytes.
	MaxEventBytes int64
	// Version goes into the User-Agent of requests whose application sent none.
	Version string
	// Listen are host:port of the ingest listener: a request in absolute form for one of them is meant for us.
	Listen []string
	// OwnAddrs are host:port of every other listener of this process. A target there, or at Listen, would loop and is
	// refused.
	OwnAddrs []string
}

// DefaultMaxEventBytes is the bound on a body where the configuration sets none.
const DefaultMaxEventBytes = 1 << 20

// Handler is the ingest listener's http.Handler.
type Handler struct {
	guard         *guard.Guard
	book          Book
	spool         Spool
	waiters       Waiters
	observer      Observer
	watch         func(context.Context) (context.Context, context.CancelFunc)
	maxEventBytes int64
	userAgent     string
	listen        addrs
	own           addrs

	stopping    chan struct{}
	stopOnce    sync.Once
	retryAfter  atomic.Int64 // of Stop, in nanoseconds; set before stopping is closed
	dismissed   chan struct{}
	dismissOnce sync.Once
}

// New makes a Handler.
func New(cfg Config, parts Parts) *Handler {
	h := &Handler{
		guard:         parts.Guard,
		book:          parts.Book,
		spool:         parts.Spool,
		waiters:       parts.Waiters,
		observer:      parts.Observer,
		watch:         parts.Watch,
		maxEventBytes: cfg.MaxEventBytes,
		userAgent:     "Postern/" + cfg.Version,
		listen:        newAddrs(cfg.Listen),
		own:           newAddrs(cfg.OwnAddrs),
		stopping:      make(chan struct{}),
		dismissed:     make(chan struct{}),
	}
	if h.guard == nil {
		h.guard = guard.New(guard.Config{Listen: cfg.Listen})
	}
	if h.observer == nil {
		h.observer = noObserver{}
	}
	if h.watch == nil {
		h.watch = context.WithCancel
	}
	if h.maxEventBytes <= 0 {
		h.maxEventBytes = DefaultMaxEventBytes
	}
	if cfg.Version == "" {
		h.userAgent = "Postern"
	}
	return h
}

// Stop refuses every later request with 503 and this Retry-After. Those with Prefer: wait go on waiting, since their
// attempt may be running: see Dismiss. It may be called more than once; the first call counts.
func (h *Handler) Stop(retryAfter time.Duration) {
	h.stopOnce.Do(func() {
		h.retryAfter.Store(int64(retryAfter))
		close(h.stopping)
	})
}

// Dismiss ends the waiting of requests with Prefer: wait, whose events are on disk, when no attempt runs any more. It may
// be called more than once.
func (h *Handler) Dismiss() { h.dismissOnce.Do(func() { close(h.dismissed) }) }

func (h *Handler) stopped() bool {
	select {
	case <-h.stopping:
		return true
	default:
		return false
	}
}

// ServeHTTP takes one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := h.take(w, r); p != nil {
		h.refuse(w, p)
	}
}

// take goes through the door step by step. What can be refused is refused before the body is read, so that a client
// with Expect: 100-continue does not send it for nothing.
func (h *Handler) take(w http.ResponseWriter, r *http.Request) *refusal {
	if p := h.guard.Check(r); p != nil {
		return p
	}
	if h.stopped() {
		return stopping(time.Duration(h.retryAfter.Load()))
	}
	dest, p := h.address(r)
	if p != nil {
		return p
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	ev := &spool.Event{
		Endpoint:   dest.endpoint.Name,
		Named:      dest.named,
		Target:     dest.target,
		Method:     r.Method,
		AcceptedAt: now,
	}
	steered, p := h.passOn(ev, r.Header)
	if p != nil {
		return p
	}
	wait := time.Duration(-1)
	if steered {
		if p = steer(ev, r.Header, dest.endpoint); p != nil {
			return p
		}
	}
	if prefer := r.Header["Prefer"]; prefer != nil {
		wait, _ = readPrefer(prefer)
	}
	if ev.Body, p = h.readBody(r); p != nil {
		return p
	}
	if ev.ID == "" {
		ev.ID = newID()
	}
	return h.keep(w, r, ev, wait)
}

// keep stores the event and answers. A negative wait means that the application does not want to know more.
func (h *Handler) keep(w http.ResponseWriter, r *http.Request, ev *spool.Event, wait time.Duration) *refusal {
	var first <-chan Answer
	if wait >= 0 && h.waiters != nil {
		// Before Append, since the attempt may have ended before Append returns.
		answers, cancel := h.waiters.Wait(ev.ID)
		defer cancel()
		first = answers
	}
	// The request is here in full: a client that has left, or has closed its sending half, gets its event kept all
	// the same. The spool bounds the time itself.
	res, err := h.spool.Append(context.Background(), ev)
	if err != nil {
		return spoolRefusal(err)
	}
	if res.Duplicate {
		writeAccepted(w, http.StatusOK, res)
		return nil
	}
	h.observer.Accepted(res.Endpoint)
	if first != nil {
		if answer, ok := h.await(r.Context(), first, wait); ok {
			writeAnswer(w, r.Method, res.ID, answer)
			return nil
		}
	}
	writeAccepted(w, http.StatusAccepted, res)
	return nil
}
