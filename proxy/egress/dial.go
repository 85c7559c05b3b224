package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"postern/proxy/retry"
)

// dialer makes an endpoint's connections.
type dialer struct {
	policy   Policy
	timeout  time.Duration // where the request says nothing
	tls      *tls.Config
	resolver *net.Resolver // nil: the system's
	proxy    *outbound     // nil: none
}

// dialContext tells a dial what it has to know of the request that caused it. net/http detaches a dial from its request,
// deadline included, and would let it go on for the sake of later requests while it holds one of the endpoint's few sockets.
type dialContext struct {
	context.Context
	deadline time.Time // zero: none
	ticket   *ticket   // nil where HTTP/2 is not offered
}

type dialKey struct{}

// Value implements context.Context.
func (c *dialContext) Value(key any) any {
	if key == (dialKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// toDial is the request in the form in which net/http may dial for it.
func toDial(req *http.Request, t *ticket) *http.Request {
	ctx := req.Context()
	deadline, _ := ctx.Deadline()
	return req.WithContext(&dialContext{ctx, deadline, t})
}

// bound is the context of a dial, which ends with its request's time.
func (d *dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c, ok := ctx.Value(dialKey{}).(*dialContext); ok && !c.deadline.IsZero() {
		return context.WithDeadline(ctx, c.deadline)
	}
	return context.WithTimeout(ctx, d.timeout)
}

// dialPlain connects to a host and port whose every resolved address is judged just before connecting to it.
func (d *dialer) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	return d.connect(ctx, network, addr)
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &PhaseError{Phase: retry.Connect, Err: err}
	}
	if err := d.policy.CheckLiteral(host); err != nil {
		return nil, err
	}
	policy := d.policy.For(host)
	var tried atomic.Bool // the two IP versions are dialled side by side
	nd := net.Dialer{Resolver: d.resolver, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		err := policy.checkDialled(address)
		if err == nil {
			tried.Store(true)
		}
		return err
	}}
	c, err := dialWith(ctx, &nd, network, addr)
	if errors.Is(err, ErrBlocked) && tried.Load() {
		// Of several addresses the allowed ones did not answer. That may pass; a blocked address would be for good.
		return nil, &PhaseError{Phase: retry.Connect, Err: err}
	}
	return c, err
}

func (p Policy) checkDialled(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &BlockedError{Class: Invalid}
	}
	return p.Check(at.Addr())
}

func dialWith(ctx context.Context, nd *net.Dialer, network, addr string) (net.Conn, error) {
	c, err := nd.DialContext(ctx, network, addr)
	if err != nil {
		return nil, phaseOf(ctx, err)
	}
	return &conn{Conn: c}, nil
}

// expired tells that a dial has ended with its time. The deadline is looked at as well: it is the connection's too, and
// its timer may go off a moment before the context's.
func expired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// phaseOf tells a failed dial's phase. The deadline comes first: it strikes in any of them.
func phaseOf(ctx context.Context, err error) error {
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return blocked
	}
	if expired(ctx) {
		return &PhaseError{Phase: retry.Timeout, Err: err}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return &PhaseError{Phase: retry.DNS, Err: err}
	}
	return &PhaseError{Phase: retry.Connect, Err: err}
}

// dialTLS is dialPlain with a handshake on top, through the proxy's tunnel where there is a proxy. It is done here and
// not by net/http so that the bytes are counted above TLS, where the alerts of a closing connection do not look like a
// part of a request, and so that the protocol is known before there is a connection (see pool).
func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	ask := ticketOf(ctx)
	if ask != nil {
		if !ask.mayDial(ctx) {
			return nil, errHTTP2
		}
		defer ask.dialled()
	}
	dial := d.connect
	if d.proxy != nil {
		dial = d.tunnel
	}
	start := time.Now()
	raw, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	secure, err := handshake(ctx, raw, d.tls, addr)
	if err != nil {
		return nil, err
	}
	if ask != nil && secure.ConnectionState().NegotiatedProtocol == "h2" {
		return nil, ask.adopt(secure, raw, time.Since(start))
	}
	if ask != nil {
		ask.declined()
	}
	return &conn{Conn: secure}, nil
}

// handshake puts TLS on raw, for the host in addr unless base names another, and closes raw if that fails.
func handshake(ctx context.Context, raw net.Conn, base *tls.Config, addr string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		raw.Close()
		return nil, &PhaseError{Phase: retry.TLS, Err: err}
	}
	cfg := base.Clone()
	cfg.ServerName = cmp.Or(cfg.ServerName, canonical(host))
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	c := tls.Client(raw, cfg)
	err = c.HandshakeContext(ctx)
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(c.ConnectionState(), err)
	}
	if err == nil {
		return c, nil
	}
	raw.Close()
	phase := retry.TLS
	if expired(ctx) {
		phase = retry.Timeout
	}
	return nil, &PhaseError{Phase: phase, Err: err}
}
