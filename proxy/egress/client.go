package egress

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// idleTimeout is under the 60 s after which common load balancers close idle connections, so that it is mostly
	// Postern that closes first and no request meets a connection in the act of closing.
	idleTimeout = 50 * time.Second
	// maxResponseHeader bounds what an answer's header may take: far over any honest one.
	maxResponseHeader = 256 << 10
	// defaultTimeout is that of a dial for which nobody set one.
	defaultTimeout = 15 * time.Second
)

// Options are what a Client is made from.
type Options struct {
	Policy Policy
	// Concurrency is the most sockets that are open at once, idle ones included; at least 1.
	Concurrency int
	// Timeout bounds a dial whose request has no deadline; zero means 15 s.
	Timeout time.Duration
	TLS     TLS
	// HTTP2 offers HTTP/2 to receivers over TLS. Who declines it, and who is spoken to without TLS, gets HTTP/1.1.
	HTTP2 bool
	// Proxy is the outbound proxy's http or https URL, user info included; empty for none.
	Proxy string
	// Resolver resolves names; nil is the system's.
	Resolver *net.Resolver
	// Log is told when the TLS files change, and when they cannot be used; nil for nobody.
	Log *slog.Logger

	lookEvery time.Duration // for tests; zero means the constant of that name
}

// Client is one endpoint's transport: an http.RoundTripper with connections of its own, so that no other endpoint can
// use them up. It is safe for concurrent use.
type Client struct {
	options Options
	proxy   *outbound // nil: none
	watch   *watch
	current atomic.Pointer[generation]
}

// generation has the connections that were made with one state of the TLS files.
type generation struct {
	dialer *dialer
	http1  *http.Transport
	http2  *pool // nil: HTTP/1.1 only
}

// New reads the TLS files and makes a Client. Nothing is dialled yet.
func New(o Options) (*Client, error) {
	files, cfg, err := o.TLS.load()
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	o.Concurrency = max(1, o.Concurrency)
	c := &Client{options: o, watch: newWatch(o, files)}
	if o.Proxy != "" {
		if c.proxy, err = newOutbound(o.Proxy); err != nil {
			return nil, err
		}
	}
	c.current.Store(c.generate(cfg))
	return c, nil
}

// generate makes what holds connections with a TLS configuration; it has none yet.
func (c *Client) generate(cfg *tls.Config) *generation {
	d := &dialer{policy: c.options.Policy, timeout: c.options.Timeout, tls: cfg, resolver: c.options.Resolver, proxy: c.proxy}
	g := &generation{dialer: d, http1: newTransport(c.options.Concurrency)}
	g.http1.DialContext, g.http1.DialTLSContext = d.dialPlain, d.dialTLS
	if c.proxy != nil {
		g.http1.Proxy, g.http1.DialContext = c.proxy.forPlain, d.dialProxy
	}
	if c.options.HTTP2 {
		cfg.NextProtos = []string{"h2", "http/1.1"}
		g.http2 = newPool(c.options.Concurrency, g.http1)
	}
	return g
}

func newTransport(concurrency int) *http.Transport {
	t := &http.Transport{
		Proxy:                  nil, // never the environment's
		MaxConnsPerHost:        concurrency,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true, // adds Accept-Encoding otherwise, and unpacks behind our back
		MaxResponseHeaderBytes: maxResponseHeader,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// RoundTrip sends one request, once, and returns as soon as the answer's headers are in. The request's deadline holds
// for the dial too. Its URL must be such as target.Target makes, and its body one that Close does not end (io.NopCloser):
// whether HTTP/2 or HTTP/1.1 carries it is known only after a dial.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	g := c.generation()
	if c.proxy != nil {
		var err error
		if req, err = g.throughProxy(req); err != nil {
			if req.Body != nil {
				req.Body.Close() // as the RoundTripper interface asks
			}
			return nil, err
		}
	}
	if g.http2 != nil && req.URL.Scheme == "https" {
		return g.http2.roundTrip(req)
	}
	resp, err := g.http1.RoundTrip(toDial(req, nil))
	if err == nil && c.proxy != nil && req.URL.Scheme == "http" {
		return c.proxy.judge(resp)
	}
	return resp, err
}

// generation is the current one; a new one after the TLS files have changed. Connections of the one before end with the
// requests that are on them.
func (c *Client) generation() *generation {
	if cfg := c.watch.look(); cfg != nil {
		c.current.Swap(c.generate(cfg)).close()
	}
	return c.current.Load()
}

// TLSProblem is why what the TLS files hold now is not in force; empty if it is.
func (c *Client) TLSProblem() string { return c.watch.problem() }

// Close closes idle connections and gives up dials that nobody waits for. Requests under way end as usual, and their
// connections are closed behind them.
func (c *Client) Close() { c.current.Load().close() }

func (g *generation) close() {
	g.http1.CloseIdleConnections()
	if g.http2 != nil {
		g.http2.retireAll()
	}
}
