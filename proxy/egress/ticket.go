package egress

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"postern/proxy/retry"
)

// ticket is one request's wish for a connection. The dial that it causes outlives it where it ends early.
type ticket struct {
	pool *pool
	host string
	// Guarded by pool.mu.
	conn  *h2conn // picked for this request
	ended bool
	owns  chan struct{} // the origin's dialing, where this dial is the one that others wait for
}

// ticketOf finds the ticket of a dial; nil where HTTP/2 is not offered.
func ticketOf(ctx context.Context) *ticket {
	if c, ok := ctx.Value(dialKey{}).(*dialContext); ok {
		return c.ticket
	}
	return nil
}

// end gives back what was not used.
func (t *ticket) end() {
	t.pool.mu.Lock()
	c := t.conn
	t.conn, t.ended = nil, true
	t.pool.mu.Unlock()
	if c != nil {
		c.starting.Add(-1)
		c.stateChanged(nil) // there is room again; or nothing on it any more, where it was retired meanwhile
	}
}

// mayDial waits for the first dial of an origin and tells whether another one is needed.
func (t *ticket) mayDial(ctx context.Context) bool {
	patience := time.NewTimer(firstDial)
	defer patience.Stop()
	for first := true; ; first = false {
		t.pool.mu.Lock()
		o := t.pool.origins[t.host]
		if o == nil {
			o = &origin{}
			t.pool.origins[t.host] = o
		}
		running, idle := o.dialing, o.room() || o.full(t.pool.limit)
		wait := running != nil && !o.http1 && first && !idle
		if !wait && !idle {
			o.dials++
			if running == nil && !o.http1 {
				t.owns = make(chan struct{})
				o.dialing = t.owns
			}
		}
		t.pool.mu.Unlock()
		if !wait {
			return !idle
		}
		select {
		case <-running:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
}

// dialled ends the waiting of others.
func (t *ticket) dialled() {
	defer t.pool.changed.fire()
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	o := t.pool.origins[t.host]
	o.dials--
	if t.owns == nil {
		return
	}
	if o.dialing == t.owns {
		o.dialing = nil
	}
	close(t.owns)
	t.owns = nil
}

// declined notes that the receiver speaks HTTP/1.1.
func (t *ticket) declined() {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	t.pool.origins[t.host].http1 = true
}

// adopt puts a connection into the pool and picks it for the request that asked, if that still waits.
func (t *ticket) adopt(secure *tls.Conn, raw net.Conn, took time.Duration) error {
	p := t.pool
	cc, err := p.transport.NewClientConn(context.WithValue(context.Background(), adoptKey{}, secure), "https", "receiver.invalid:443")
	if err != nil {
		secure.Close()
		return &PhaseError{Phase: retry.Connection, Err: err}
	}
	c := &h2conn{cc: cc, tls: secure, pool: p, host: t.host, settles: time.Now().Add(min(max(2*took, settleLeast), settleMost))}
	c.raw, _ = raw.(*conn)
	cc.SetStateHook(c.stateChanged)
	p.mu.Lock()
	o := p.origins[t.host]
	turned := o.http1
	o.http1 = false
	if !t.ended && t.conn == nil {
		c.starting.Add(1)
		t.conn = c
	}
	o.conns = append(o.conns, c)
	p.mu.Unlock()
	if turned {
		p.http1.CloseIdleConnections() // they would be sockets beyond the endpoint's number
	}
	p.changed.fire()
	return errHTTP2
}

// signal wakes everybody who waits.
type signal struct {
	mu sync.Mutex // guards c
	c  chan struct{}
}

func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
