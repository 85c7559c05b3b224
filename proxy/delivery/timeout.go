package delivery

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// errTimeout is the cause by which an attempt's own deadline is told from a cut.
var errTimeout = errors.New("the attempt's time is up")

// fallbackTimeout is for an endpoint that has none.
const fallbackTimeout = 15 * time.Second

// timeoutLink bounds connect, headers and body together.
type timeoutLink struct{ next link }

func (l *timeoutLink) send(ctx context.Context, a *attempt) {
	limit := cmp.Or(a.job.Event.Timeout, a.job.Endpoint.Timeout, fallbackTimeout)
	ctx, a.cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
	defer a.cancel()
	l.next.send(ctx, a)
}

// timedOut and cut tell why ctx ended, if it did.
func timedOut(ctx context.Context) bool { return context.Cause(ctx) == errTimeout }

func cut(ctx context.Context) bool { return ctx.Err() != nil && !timedOut(ctx) }
