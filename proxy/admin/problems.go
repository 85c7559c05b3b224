package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"postern/proxy/problem"
	"postern/spool"
)

// known is the one table that turns errors of the spool into answers.
var known = []struct {
	err    error
	answer problem.Problem
}{
	{spool.ErrNotFound, problem.Problem{Status: 404, Slug: "no-such-event", Title: "No such event",
		Detail: "The spool has no trace of this event. Delivered events are forgotten after spool.delivered_retention."}},
	{spool.ErrCursor, problem.Problem{Status: 400, Slug: "bad-request", Title: "The request is not understood",
		Detail: "cursor: it is not one of this Postern. Take next_cursor of the page before, or leave it out to begin anew."}},
	{spool.ErrBusy, problem.Problem{Status: 409, Slug: "event-in-flight", Title: "The event is in flight", RetryAfter: time.Second,
		Detail: "An attempt is running. Ask again when it has ended."}},
	{spool.ErrDelivered, problem.Problem{Status: 409, Slug: "event-delivered", Title: "The event was delivered",
		Detail: "The event was delivered and its payload has left the spool; there is nothing left to send."}},
	{spool.ErrFull, problem.Problem{Status: 503, Slug: "spool-full", Title: "The spool is full", RetryAfter: 5 * time.Second,
		Detail: "The spool has no room for this. Purge dead letters, or raise spool.max_bytes."}},
	{spool.ErrUnwritable, problem.Problem{Status: 503, Slug: "spool-unwritable", Title: "The spool cannot be written", RetryAfter: 5 * time.Second,
		Detail: "The disk refuses writes. See the log for the reason; Postern goes on by itself when it can write again."}},
	{spool.ErrUnknownOutcome, problem.Problem{Status: 503, Slug: "unknown-outcome", Title: "The outcome is not known", RetryAfter: 5 * time.Second,
		Detail: "The disk did not answer in time. The change may or may not be made: look before you ask again."}},
	{spool.ErrClosed, problem.Problem{Status: 503, Slug: "stopping", Title: "Postern is stopping", RetryAfter: 5 * time.Second,
		Detail: "Postern is stopping and changes nothing any more."}},
	{context.Canceled, problem.Problem{Status: 503, Slug: "stopping", Title: "Postern is stopping", RetryAfter: 5 * time.Second,
		Detail: "The call was ended before it was done."}},
}

// clientLeft is for the log and for whatever stands in between: the client reads no answer any more. Its number is what
// proxies use for it; RFC 9110 has none.
var clientLeft = problem.Problem{Status: 499, Slug: "client-left", Title: "The client closed the request",
	Detail: "The client closed the connection before the call was done."}

// problem finds the answer to an error. What is in no table is a fault of ours: it goes to the log, not to the client.
func (h *Handler) problem(r *http.Request, err error) problem.Problem {
	if refused, ok := errors.AsType[refusal](err); ok {
		return refused.Problem
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil && h.ctx.Err() == nil {
		return clientLeft
	}
	if answer, ok := lookUp(err); ok {
		return answer
	}
	return h.internal(fmt.Errorf("%s: %w", r.Pattern, err))
}

func lookUp(err error) (answer problem.Problem, ok bool) {
	for _, row := range known {
		if errors.Is(err, row.err) {
			return row.answer, true
		}
	}
	return problem.Problem{}, false
}

func (h *Handler) internal(err error) problem.Problem {
	h.parts.Logger.Error("an admin call failed", "error", err)
	return problem.Problem{Status: 500, Slug: "internal", Title: "Postern could not answer", Detail: "The reason is in Postern's log."}
}

// badRequest says what is wrong and what is allowed.
func badRequest(format string, args ...any) refusal {
	return refusal{problem.Problem{Status: 400, Slug: "bad-request", Title: "The request is not understood", Detail: fmt.Sprintf(format, args...)}}
}

func notFound(detail string) refusal {
	return refusal{problem.Problem{Status: 404, Slug: "not-found", Title: "Not found", Detail: detail}}
}

func methodNotAllowed(allow string) refusal {
	return refusal{problem.Problem{Status: 405, Slug: "method-not-allowed", Title: "Method not allowed",
		Detail: "This path takes " + allow + ".", Header: http.Header{"Allow": {allow}}}}
}
