package delivery

import (
	"context"
	"log/slog"
	"runtime/debug"

	"postern/proxy/redact"
	"postern/proxy/retry"
)

// recoverLink turns a panic into an attempt that failed as invalid_request: one event that nobody can send must not
// stop the others, nor be tried for ever.
type recoverLink struct {
	next link
	log  *slog.Logger
}

func (l *recoverLink) send(ctx context.Context, a *attempt) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		l.log.Error("an attempt panicked; its event becomes a dead letter; please report this",
			"event", a.job.Event.ID, "endpoint", a.job.Endpoint.Name, "panic", redact.Panic(value), "stack", string(debug.Stack()))
		sent := a.wire.sent()
		a.result = Result{Attempt: a.result.Attempt}
		a.result.Attempt.StatusCode = 0
		a.refuse(retry.InvalidRequest)
		a.result.Unsent = !sent
	}()
	l.next.send(ctx, a)
}
