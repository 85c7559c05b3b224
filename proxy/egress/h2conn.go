package egress

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"postern/proxy/retry"
)

// h2conn is one HTTP/2 connection.
type h2conn struct {
	cc      *http.ClientConn
	tls     *tls.Conn
	raw     *conn // under TLS
	pool    *pool
	host    string
	settles time.Time // when the server's SETTINGS must have come

	proven  atomic.Bool // it has brought an answer
	retired atomic.Bool // it takes no more streams
}

// unsettled is how long the connection may carry one stream only; zero if it may carry as many as the server allows.
func (c *h2conn) unsettled() time.Duration {
	if c.proven.Load() {
		return 0
	}
	return max(0, time.Until(c.settles))
}

// roundTrip sends one request on a reserved stream.
func (c *h2conn) roundTrip(req *http.Request) (*http.Response, error) {
	s := &stream{Conn: c.tls}
	ctx := req.Context()
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		if trace.GetConn != nil {
			trace.GetConn(c.host)
		}
		if trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{Conn: s, Reused: c.proven.Load()})
		}
	}
	out := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { s.started.Store(true) }, // just before the frame is written
	}))
	if out.ContentLength == 0 {
		// No body, and said so in the HEADERS frame. Nothing sends it twice here: see pool.
		out.Body, out.TransferEncoding = http.NoBody, nil
	}
	heard := c.heard()
	resp, err := c.cc.RoundTrip(out)
	if err != nil {
		if ctx.Err() != nil && c.heard() == heard {
			// Nothing at all came while this request waited: the other end may have vanished. Other requests must not
			// find that out one by one.
			c.drop()
		}
		return nil, c.explain(err, s)
	}
	if !c.proven.Swap(true) {
		c.pool.changed.fire()
	}
	resp.Request = req
	return resp, nil
}

func (c *h2conn) heard() int64 {
	if c.raw == nil {
		return 0
	}
	return c.raw.reads.Load()
}

// drop takes the connection out of the pool.
func (c *h2conn) drop() {
	c.pool.mu.Lock()
	if o := c.pool.origins[c.host]; o != nil {
		o.remove(c)
	}
	c.pool.mu.Unlock()
	c.retire()
}

// retire closes the connection as soon as no stream is on it.
func (c *h2conn) retire() {
	c.retired.Store(true)
	c.closeUnused()
}

func (c *h2conn) closeUnused() {
	if c.retired.Load() && c.cc.InFlight() == 0 {
		c.cc.Close()
	}
}

// stateChanged is called by whoever changed the state, possibly with the pool's lock held.
func (c *h2conn) stateChanged(*http.ClientConn) {
	c.closeUnused()
	c.pool.changed.fire()
}

// explain adds what net/http leaves out: that the receiver promised not to have processed the request, and which alert
// ended a connection before it carried anything.
func (c *h2conn) explain(err error, s *stream) error {
	if unprocessed(err) {
		return &UnprocessedError{Err: err}
	}
	if !s.started.Load() && c.cc.Err() != nil {
		// Reading has ended; the error in which it did is kept by crypto/tls.
		_, ended := c.tls.Read(make([]byte, 1))
		return errors.Join(err, ended)
	}
	return err
}

// stream stands for the connection in a request's trace: it tells whether anything of this one request can have left.
type stream struct {
	net.Conn
	started atomic.Bool
}

// Written is not a number of bytes here: 1 if any may have left.
func (s *stream) Written() int64 {
	if s.started.Load() {
		return 1
	}
	return 0
}

// OnWrite has nothing to call: net/http's trace tells when an HTTP/2 request was written.
func (s *stream) OnWrite(func()) {}

// UnprocessedError is of a request that left and that the receiver promised not to have processed: its stream was refused
// (RFC 9113, section 8.7), or is beyond the last one that a GOAWAY names (section 6.8).
type UnprocessedError struct{ Err error }

// Error says so.
func (e *UnprocessedError) Error() string { return "the receiver did not process the request" }

// Unwrap gives the cause.
func (e *UnprocessedError) Unwrap() error { return e.Err }

// RetryClass is that of a broken connection.
func (e *UnprocessedError) RetryClass() retry.Class { return retry.Connection }

// Unprocessed tells it to those who know the error by its methods only.
func (e *UnprocessedError) Unprocessed() bool { return true }

// streamError has the fields of net/http's own, which errors.As converts to it.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream error" }

// refusedStream is the code REFUSED_STREAM (RFC 9113, section 7).
const refusedStream = 0x7

// goAwayText is the error of net/http for a stream beyond a GOAWAY's last one. It has no other sign.
const goAwayText = "http2: Transport received Server's graceful shutdown GOAWAY"

func unprocessed(err error) bool {
	if refused, ok := errors.AsType[streamError](err); ok {
		return refused.Code == refusedStream
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if e.Error() == goAwayText {
			return true
		}
	}
	return false
}
