package server

import (
	"context"
	"time"
)

// For each request net/http starts a goroutine that reads one byte, only to learn whether the client leaves: a system
// call that finds nothing, a wait for the network, and a deadline to break it off again. Where the handler seldom wants to
// know (Config.WatchOnDemand) that read is told at once that nothing has come, and Watch reads when it is asked to.
//
// net/http lifts the deadline for reading right before that read, and an ordinary read has one (all of Limits are set).
// So the first read of one byte after the deadline was lifted is taken for it, and gets no byte and no error, which
// io.Reader allows: were it an ordinary one after all, its caller would read again, and get what has come.

// Read reads until the wanted deadline, or answers net/http's look-out.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.lookOut.CompareAndSwap(true, false) {
		return 0, nil
	}
	if c.hasEarly && len(p) > 0 {
		c.hasEarly = false
		return copy(p, c.early[:]), nil
	}
	return c.read(p)
}

// Watch gives a context that ends when the client of a request leaves; ctx is the request's. The request's body must have
// been read to its end. The function ends the watch and must be called before the handler returns. Without
// Config.WatchOnDemand net/http watches by itself, and the context is ctx.
func Watch(ctx context.Context) (context.Context, context.CancelFunc) {
	c, _ := ctx.Value(connKey{}).(*conn)
	if c == nil || !c.onDemand() || c.hasEarly { // who has sent the next request cannot be seen to leave
		return ctx, func() {}
	}
	ctx, left := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n, err := c.read(c.early[:])
		c.hasEarly = n > 0 // of the next request, sent before this one's answer
		if err != nil {
			left() // or the watch has ended, and nobody looks at ctx any more
		}
	}()
	return ctx, func() {
		c.reading.want(time.Unix(1, 0)) // long ago: the read comes back
		<-ended
		c.reading.want(time.Time{})
		left()
	}
}

// onDemand tells whether net/http's look-out is put off. It has a deadline beyond the bound, and is a real read there.
func (c *conn) onDemand() bool { return c.listener.cfg.WatchOnDemand && !c.beyond }
