package egress

import (
	"net"
	"net/http"
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
	TLS     TLSFiles
	// Proxy is the outbound proxy's http or https URL, user info included; empty for none.
	Proxy string
	// Resolver resolves names; nil is the system's.
	Resolver *net.Resolver
}

// Client is one endpoint's transport: an http.RoundTripper for HTTP/1.1 with connections of its own, so that no other
// endpoint can use them up. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	dialer    *dialer
	proxied   bool
}

// New reads the TLS files and makes a Client. Nothing is dialled yet.
func New(o Options) (*Client, error) {
	cfg, err := o.TLS.config()
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	d := &dialer{policy: o.Policy, timeout: o.Timeout, tls: cfg, resolver: o.Resolver}
	c := &Client{dialer: d, transport: newTransport(max(1, o.Concurrency))}
	if o.Proxy == "" {
		c.transport.DialContext = d.dialPlain
		c.transport.DialTLSContext = d.dialTLS
		return c, nil
	}
	c.proxied = true
	if err := c.useProxy(o.Proxy); err != nil {
		return nil, err
	}
	return c, nil
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

// RoundTrip sends one request and returns as soon as the answer's headers are in. The request's deadline holds for the
// dial too. Its URL must be such as target.Target makes.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.WithContext(withDialDeadline(req.Context()))
	if c.proxied {
		var err error
		if req, err = c.throughProxy(req); err != nil {
			if req.Body != nil {
				req.Body.Close() // as the RoundTripper interface asks
			}
			return nil, err
		}
	}
	return c.transport.RoundTrip(req)
}

// Close closes idle connections and gives up dials that nobody waits for. Requests under way end as usual, and their
// connections are closed behind them.
func (c *Client) Close() { c.transport.CloseIdleConnections() }
