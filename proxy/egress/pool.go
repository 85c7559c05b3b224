package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// errHTTP2 is what a dial for net/http's HTTP/1.1 transport says when HTTP/2 was agreed on: the connection is in the pool.
var errHTTP2 = errors.New("the receiver speaks HTTP/2")

const (
	// pingAfter and pingWithin bound how long a connection whose other end has vanished looks alive: together one
	// default attempt. Not more often, because some servers take frequent pings for abuse; idle connections are closed
	// after 50 s anyway.
	pingAfter  = 10 * time.Second
	pingWithin = 5 * time.Second
	// firstDial is how long dials wait for the first one to show whether HTTP/2 is spoken. Where it is, they are not
	// needed; where the first one hangs, they must not hang with it.
	firstDial = 500 * time.Millisecond
	// A fresh connection carries one stream until its first answer, or until the server's SETTINGS have come: whoever
	// allows fewer streams than are opened before that refuses the rest. They are the first thing a server sends (RFC
	// 9113, section 3.4), so twice what connecting took is ample where their coming cannot be seen. Nobody is told of it
	// either.
	settleLeast = 250 * time.Millisecond
	settleMost  = time.Second
	settlePoll  = 10 * time.Millisecond
	// fullPoll is how often a request that waits for a stream looks by itself. net/http tells that one has ended by
	// comparing figures, and does not while it is telling: a stream that begins and ends meanwhile leaves them as they were,
	// and nobody hears of its end (Go 1.26).
	fullPoll = 100 * time.Millisecond
)

// pool has an endpoint's HTTP/2 connections. net/http's own pool sends a request again by itself when its stream was
// refused; here each request goes to one http.ClientConn, which sends it once or not at all.
//
// All dials are the HTTP/1.1 transport's. One that ends in HTTP/2 puts its connection here and fails with errHTTP2, upon
// which the request that asked for it comes back here.
type pool struct {
	limit     int // connections at once
	http1     *http.Transport
	transport *http.Transport // makes ClientConns; holds none
	changed   signal          // a stream ended, a connection came, an answer came

	mu      sync.Mutex // guards what follows
	origins map[string]*origin
}

// origin is what is known of one scheme, host and port.
type origin struct {
	conns   []*h2conn
	dials   int
	dialing chan struct{} // closed when the dial that others wait for has ended; nil: there is none
	http1   bool          // the last dial ended in HTTP/1.1: dials do not wait for each other
}

type adoptKey struct{}

func newPool(limit int, http1 *http.Transport) *pool {
	p := &pool{limit: limit, http1: http1, origins: map[string]*origin{}}
	p.transport = newTransport(1)
	p.transport.Protocols.SetHTTP2(true)
	p.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin, WriteByteTimeout: pingAfter + pingWithin}
	p.transport.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return ctx.Value(adoptKey{}).(*tls.Conn), nil
	}
	return p
}

// roundTrip sends a request by HTTP/2 where the receiver speaks it, else by HTTP/1.1.
func (p *pool) roundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	t := &ticket{pool: p, host: req.URL.Host}
	defer t.end()
	var dialling *http.Request
	for {
		if c := p.take(ctx, t); c != nil {
			return c.roundTrip(req)
		}
		if dialling == nil {
			dialling = toDial(req, t)
		}
		resp, err := p.http1.RoundTrip(dialling)
		if !errors.Is(err, errHTTP2) {
			return resp, err
		}
	}
}

// take picks a connection that has a stream to spare. It waits where one is about to have; nil means that a dial is
// needed, or that ctx has ended.
func (p *pool) take(ctx context.Context, t *ticket) *h2conn {
	var changed <-chan struct{}
	for {
		c, wait := p.look(t)
		if c != nil || wait == 0 {
			return c
		}
		if changed == nil {
			changed = p.changed.wait() // and look again, so that nothing is missed in between
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
		changed = p.changed.wait()
	}
}

// look picks the ticket's own connection, or another one; without either it tells how long to wait.
func (p *pool) look(t *ticket) (*h2conn, time.Duration) {
	p.mu.Lock()
	c, wait, dead := t.conn, time.Duration(0), []*h2conn(nil)
	if t.conn = nil; c == nil {
		c, wait, dead = p.pickLocked(t.host)
	}
	p.mu.Unlock()
	for _, d := range dead {
		d.retire()
	}
	return c, wait
}

// pickLocked finds a connection with a stream to spare, or says how long to wait for one at most; zero: not at all. Those
// that are closed, or told to go away, are no longer the origin's.
func (p *pool) pickLocked(host string) (found *h2conn, wait time.Duration, dead []*h2conn) {
	o := p.origins[host]
	if o == nil {
		return nil, 0, nil
	}
	for _, c := range o.conns {
		left, unused := c.unsettled(), c.unused()
		switch {
		case c.cc.Err() != nil || unused && c.spare() == 0:
			dead = append(dead, c)
		case c.spare() > 0 && (left == 0 || unused):
			found = c
		case left > 0:
			wait = min(left, settlePoll)
		}
		if found != nil {
			break
		}
	}
	for _, d := range dead {
		o.remove(d)
	}
	switch {
	case found != nil:
		found.starting.Add(1)
		return found, 0, dead
	case wait == 0 && o.full(p.limit):
		wait = fullPoll // until a stream ends; or the request's time
	}
	return nil, wait, dead
}

// full tells whether another dial could become a connection too many. Those of HTTP/1.1 are net/http's to count.
func (o *origin) full(limit int) bool { return len(o.conns) > 0 && len(o.conns)+o.dials >= limit }

// room tells whether take would not need a dial.
func (o *origin) room() bool {
	return slices.ContainsFunc(o.conns, func(c *h2conn) bool { return c.spare() > 0 || c.unsettled() > 0 && c.cc.Err() == nil })
}

func (o *origin) remove(c *h2conn) {
	o.conns = slices.DeleteFunc(o.conns, func(other *h2conn) bool { return other == c })
}

// retireAll lets every connection end with the streams that are on it.
func (p *pool) retireAll() {
	p.mu.Lock()
	var all []*h2conn
	for _, o := range p.origins {
		all = append(all, o.conns...)
		o.conns = nil
	}
	p.mu.Unlock()
	for _, c := range all {
		c.retire()
	}
}
