package egress

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// h2conn is one HTTP/2 connection.
type h2conn struct {
	cc      *http.ClientConn
	tls     *tls.Conn
	raw     *conn // under TLS
	pool    *pool
	host    string
	settles time.Time // when the server's SETTINGS must have come

	// starting counts the requests for which the connection was picked and that have no stream yet. ClientConn.Reserve is
	// not used for that: if the server's limit falls below what is reserved, everybody waits for everybody (Go 1.26).
	starting atomic.Int64

	proven  atomic.Bool // it has brought an answer
	retired atomic.Bool // it takes no more streams
}

// unsettled is how long the connection may carry one stream only; zero if it may carry as many as the server allows.
func (c *h2conn) unsettled() time.Duration {
	if c.proven.Load() || c.limited() {
		return 0
	}
	return max(0, time.Until(c.settles))
}

// limited tells whether the server's limit of streams has come. Until then net/http goes by a guess; a server that names
// that very number makes no difference that could be seen, and none that matters.
func (c *h2conn) limited() bool {
	const guess = 100
	used := c.cc.InFlight()
	limit := c.cc.Available() + used
	return limit != guess && c.cc.InFlight() == used
}

// spare is how many more requests the connection may be picked for. Those that are starting are counted first: one that
// gets its stream meanwhile counts twice then, and not never.
func (c *h2conn) spare() int64 {
	starting := c.starting.Load()
	return int64(c.cc.Available()) - starting
}

// unused tells whether no request is on the connection, or about to be.
func (c *h2conn) unused() bool { return c.starting.Load() == 0 && c.cc.InFlight() == 0 }

// roundTrip sends one request; the connection was picked for it.
func (c *h2conn) roundTrip(req *http.Request) (*http.Response, error) {
	s := &stream{Conn: c.tls, conn: c}
	defer s.begin(false)
	ctx := req.Context()
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		if trace.GetConn != nil {
			trace.GetConn(c.host)
		}
		if trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{Conn: s, Reused: c.proven.Load()})
		}
	}
	s.trace.WroteHeaderField = func(string, []string) { s.begin(true) } // just before the frame is written
	out := req.WithContext(httptrace.WithClientTrace(ctx, &s.trace))
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
	if c.retired.Load() && c.unused() {
		c.cc.Close()
	}
}

// stateChanged is called by whoever changed the state, possibly with the pool's lock held.
func (c *h2conn) stateChanged(*http.ClientConn) {
	c.closeUnused()
	c.pool.changed.fire()
}

// explain adds what net/http leaves out: what the receiver said about the request by the way in which it ended the stream
// or the connection, and which alert ended a connection before it carried anything.
func (c *h2conn) explain(err error, s *stream) error {
	switch said(err) {
	case "unprocessed":
		return &StreamError{Err: err, unprocessed: true}
	case "failed":
		return &StreamError{Err: err}
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
	conn    *h2conn
	trace   httptrace.ClientTrace
	counted atomic.Bool // no longer in conn.starting
	started atomic.Bool // something may have left
}

// begin ends the time between picking a connection and having a stream of it.
func (s *stream) begin(started bool) {
	if started {
		s.started.Store(true)
	}
	if s.counted.Swap(true) {
		return
	}
	s.conn.starting.Add(-1)
	if !started {
		s.conn.stateChanged(nil) // there is room again
		return
	}
	// Nothing is reserved, so that this releases nothing; but it has net/http see that there is one stream more, without
	// which it would not tell of its end.
	s.conn.cc.Release()
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
