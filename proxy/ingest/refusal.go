package ingest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/proxy/problem"
	"postern/proxy/redact"
	"postern/spool"
)

// refusal is an answer that takes nothing in. Its slug is also the reason that is counted.
type refusal = problem.Problem

// Slugs of refusals, those of proxy/guard (foreign-page, token) beside them.
const (
	slugNoTarget        = "no-target"
	slugBadTarget       = "bad-target"
	slugBadHeader       = "bad-header"
	slugForbiddenTarget = "forbidden-target"
	slugUnknownEndpoint = "unknown-endpoint"
	slugConnect         = "connect"
	slugTooLarge        = "too-large"
	slugBrokenBody      = "broken-body"
	slugReused          = "reused"
	slugSpoolFull       = "spool-full"
	slugEndpointFull    = "endpoint-full"
	slugUnwritable      = "spool-unwritable"
	slugUnknownOutcome  = "unknown-outcome"
	slugStopping        = "stopping"
)

// Reasons lists every reason that Observer.Rejected may get: the problem's type with underscores.
func Reasons() []string {
	slugs := []string{"foreign-page", "token", slugNoTarget, slugBadTarget, slugBadHeader, slugForbiddenTarget,
		slugUnknownEndpoint, slugConnect, slugTooLarge, slugBrokenBody, slugReused, slugSpoolFull, slugEndpointFull,
		slugUnwritable, slugUnknownOutcome, slugStopping}
	for i, slug := range slugs {
		slugs[i] = reason(slug)
	}
	return slugs
}

func reason(slug string) string { return strings.ReplaceAll(slug, "-", "_") }

func (h *Handler) refuse(w http.ResponseWriter, p *refusal) {
	h.observer.Rejected(reason(p.Slug))
	problem.Write(w, *p)
}

// How long a client is asked to stay away. Room comes with deliveries, which take seconds; a disk takes a person or
// a moment; an unknown outcome is best cleared up soon.
const (
	retryFull       = 10 * time.Second
	retryUnwritable = 10 * time.Second
	retryUnknown    = 2 * time.Second
	retryStopping   = 5 * time.Second
)

// spoolRefusals turns what Append says into HTTP. Nothing else does.
var spoolRefusals = []struct {
	err error
	refusal
}{
	{spool.ErrFull, refusal{Status: 503, Slug: slugSpoolFull, Title: "The spool is full", RetryAfter: retryFull,
		Detail: "There is no room for an event of this size. Nothing was stored; send it again later. Deliveries make room; an operator can purge dead letters, raise spool.max_bytes, or make room on the disk, whichever is used up."}},
	{spool.ErrEndpointFull, refusal{Status: 503, Slug: slugEndpointFull, Title: "The endpoint's share of the spool is full", RetryAfter: retryFull,
		Detail: "Events that wait for this endpoint fill spool.max_endpoint_share of the spool. Nothing was stored; send it again later. Other endpoints are not affected."}},
	{spool.ErrUnwritable, refusal{Status: 503, Slug: slugUnwritable, Title: "The spool cannot be written", RetryAfter: retryUnwritable,
		Detail: "The disk refuses to be written. Nothing was stored; send it again later. The log of Postern says what is wrong with the disk."}},
	{spool.ErrClosed, refusal{Status: 503, Slug: slugStopping, Title: "Postern is stopping", RetryAfter: retryStopping,
		Detail: "Postern is stopping. Nothing was stored; send it again in a moment."}},
	{spool.ErrUnknownOutcome, unknownOutcome},
	{context.Canceled, unknownOutcome},
	{context.DeadlineExceeded, unknownOutcome},
	{spool.ErrReused, refusal{Status: 422, Slug: slugReused, Title: "The key was used for a different request",
		Detail: "This Idempotency-Key or Postern-Event-Id was seen with another method, target or body. Use a new key for a new request, or repeat the first one unchanged."}},
	{spool.ErrIDTaken, refusal{Status: 422, Slug: slugReused, Title: "The event ID is taken",
		Detail: "This Postern-Event-Id belongs to an event of another endpoint. An event ID is unique in the whole spool: choose another one."}},
}

var unknownOutcome = refusal{Status: 503, Slug: slugUnknownOutcome, Title: "The outcome is unknown", RetryAfter: retryUnknown,
	Detail: "The disk did not confirm in time: the event may or may not be stored. Send the request again with the same Idempotency-Key, which never stores it twice; without one, a second send may be delivered twice."}

func spoolRefusal(err error) *refusal {
	for _, row := range spoolRefusals {
		if errors.Is(err, row.err) {
			p := row.refusal
			return &p
		}
	}
	// An error that Append does not promise says nothing about what was stored.
	p := unknownOutcome
	return &p
}

func stopping(retryAfter time.Duration) *refusal {
	if retryAfter <= 0 {
		retryAfter = retryStopping
	}
	return &refusal{Status: 503, Slug: slugStopping, Title: "Postern is stopping", RetryAfter: retryAfter,
		Detail: "Postern is stopping. Nothing was stored; send it again in a moment.",
		Header: http.Header{"Connection": {"close"}}}
}

func connectRefusal() *refusal {
	return &refusal{Status: 405, Slug: slugConnect, Title: "CONNECT is not offered",
		Detail: "Inside a tunnel Postern would see nothing that it could keep and send again. For an https target send the request to this address itself: POST /https://partner.example/postback, or set https_proxy to nothing and use the header Postern-Url.",
		Header: http.Header{"Allow": {"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}}}
}

func noTarget(rest string) *refusal {
	detail := howTo
	switch {
	case rest == "to" || rest == "to/":
		detail = "The endpoint's name is missing after /to/. " + howTo
	case strings.Contains(rest, "."):
		detail = "What follows the slash must begin with http:// or https://. " + howTo
	}
	return &refusal{Status: 400, Slug: slugNoTarget, Title: "No target", Detail: detail}
}

func twoTargets(what string) *refusal {
	return &refusal{Status: 400, Slug: slugBadTarget, Title: "More than one target", Detail: what + " Name the target in one way only."}
}

// targetRefusal passes on the sentences of proxy/target, which repeat nothing of the target.
func targetRefusal(where string, err error) *refusal {
	return &refusal{Status: 400, Slug: slugBadTarget, Title: "The target cannot be used", Detail: where + redact.Error(err)}
}

func loopRefusal() *refusal {
	return &refusal{Status: 403, Slug: slugForbiddenTarget, Title: "The target is not allowed",
		Detail: "The target is a listener of this Postern: the request would go round in circles. Write the receiver's own address."}
}

func forbiddenTarget(err error) *refusal {
	return &refusal{Status: 403, Slug: slugForbiddenTarget, Title: "The target is not allowed", Detail: redact.Error(err)}
}

// unknownEndpoint repeats the name only where it looks like one: it could be a piece of a URL with secrets.
func unknownEndpoint(name string) *refusal {
	which := "of this name"
	if len(name) <= 64 && validID(name) {
		which = strconv.Quote(name) // shows: a name, to whoever asked by it
	}
	return &refusal{Status: 404, Slug: slugUnknownEndpoint, Title: "No such endpoint",
		Detail: "The configuration has no endpoint " + which + ". `postern endpoints` lists those that it has."}
}

func headerRefusal(name, what string) *refusal {
	if !strings.HasSuffix(what, "?") {
		what += "."
	}
	return &refusal{Status: 400, Slug: slugBadHeader, Title: "A control header is not valid", Detail: name + ": " + what}
}
