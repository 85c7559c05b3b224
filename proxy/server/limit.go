package server

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leastIdle is how long a connection must have been idle before it gives way to a new one: one that has just been
	// opened, or has just been answered, is about to say something.
	leastIdle = time.Second
	// beyondConns is how many connections are taken beyond the bound. When there are as many, the oldest that has not
	// asked for anything gives way, so that those who say nothing do not keep a probe out.
	beyondConns = 32
	// beyondTime is what one of them has for its request.
	beyondTime = 2 * time.Second
	// tellEvery is how often the log says that the bound is reached.
	tellEvery = 30 * time.Second
)

// listener counts connections.
type listener struct {
	net.Listener
	cfg Config

	mu     sync.Mutex // guards what follows
	within map[*conn]struct{}
	beyond map[*conn]struct{}
	told   time.Time
}

func newListener(ln net.Listener, cfg Config) *listener {
	return &listener{Listener: ln, cfg: cfg, within: map[*conn]struct{}{}, beyond: map[*conn]struct{}{}}
}

// Accept takes the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		taken, gone := l.admit(newConn(c, l))
		if gone != nil {
			gone.Conn.Close() // not by its own Close: it is counted no more
		}
		if taken != nil {
			return taken, nil
		}
	}
}

// admit finds room for a connection, and says which one has to go for that; that may be the new one.
func (l *listener) admit(c *conn) (taken, gone *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.idle.Store(c.since.UnixNano())
	if l.cfg.MaxConnections <= 0 || len(l.within) < l.cfg.MaxConnections {
		l.within[c] = struct{}{}
		return c, nil
	}
	if gone = longestIdle(l.within, c.since); gone != nil {
		delete(l.within, gone)
		l.within[c] = struct{}{}
		return c, gone
	}
	l.tellLocked(c.since)
	if len(l.beyond) >= beyondConns {
		if gone = oldestMute(l.beyond); gone == nil {
			return nil, c
		}
		delete(l.beyond, gone)
	}
	c.beyond = true
	l.beyond[c] = struct{}{}
	return c, gone
}

func (l *listener) tellLocked(now time.Time) {
	if now.Sub(l.told) < tellEvery {
		return
	}
	l.told = now
	l.cfg.Logger.Warn("all connections of a listener are in use; more are refused with 503. Clients may keep too many open or send too slowly; else raise max_connections",
		"listener", l.cfg.Name, "max_connections", l.cfg.MaxConnections)
}

// longestIdle is the connection that has waited longest for a request, if it has waited long enough.
func longestIdle(conns map[*conn]struct{}, now time.Time) *conn {
	var found *conn
	earliest := now.Add(-leastIdle).UnixNano()
	for c := range conns {
		if at := c.idle.Load(); at != 0 && at <= earliest {
			found, earliest = c, at
		}
	}
	return found
}

func oldestMute(conns map[*conn]struct{}) *conn {
	var found *conn
	for c := range conns {
		if !c.serving.Load() && (found == nil || c.since.Before(found.since)) {
			found = c
		}
	}
	return found
}

// conn is one connection.
type conn struct {
	net.Conn
	listener *listener
	since    time.Time
	beyond   bool
	serving  atomic.Bool  // of one beyond: it has asked for something
	idle     atomic.Int64 // since when no request is under way, in Unix nanoseconds; 0: one is

	reading, writing deadline

	lookOut  atomic.Bool // the next read of one byte is net/http's, to learn whether the client leaves
	early    [1]byte     // what came while Watch watched, if hasEarly; both are for the one who reads
	hasEarly bool
}

func newConn(c net.Conn, l *listener) *conn {
	return &conn{
		Conn: c, listener: l, since: time.Now(),
		reading: deadline{set: c.SetReadDeadline}, writing: deadline{set: c.SetWriteDeadline},
	}
}

// Close ends the connection and its count.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.within, c)
	delete(c.listener.beyond, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http end an answer to a client that still sends, without a reset that would take the answer along.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// changed is told by net/http what a connection does.
func changed(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateIdle:
		c.idle.Store(time.Now().UnixNano())
	case http.StateActive:
		c.idle.Store(0)
	}
}
