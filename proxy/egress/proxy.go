package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"

	"postern/proxy/retry"
)

// CheckProxy tells whether raw can be an outbound proxy. The error repeats nothing of it: it may hold a password.
func CheckProxy(raw string) error {
	_, err := parseProxy(raw)
	return err
}

func parseProxy(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, ErrProxy
	}
	return u, nil
}

// useProxy sends everything through the proxy. Its own address is not judged: the operator wrote it down. A proxy that
// is spoken to over TLS gets that TLS here, with the system's roots, because net/http would use the endpoint's CA and
// client certificate for it; net/http then sees a plain one.
func (c *Client) useProxy(raw string) error {
	u, err := parseProxy(raw)
	if err != nil {
		return err
	}
	plain := *u
	plain.Scheme = "http"
	plain.Host = net.JoinHostPort(u.Hostname(), proxyPort(u))
	overTLS := u.Scheme == "https"
	c.transport.Proxy = http.ProxyURL(&plain)
	c.transport.TLSClientConfig = c.dialer.tls // of the targets, inside the tunnel
	c.transport.TLSHandshakeTimeout = c.dialer.timeout
	c.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := c.dialer.bound(ctx)
		defer cancel()
		conn, err := dialWith(ctx, &net.Dialer{Resolver: c.dialer.resolver}, network, addr)
		if err != nil || !overTLS {
			return conn, err
		}
		return handshake(ctx, conn, &tls.Config{MinVersion: tls.VersionTLS12}, addr)
	}
	return nil
}

func proxyPort(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// throughProxy judges the target and gives the request the form that a proxy reads. On an error it returns the request
// as it was.
func (c *Client) throughProxy(req *http.Request) (*http.Request, error) {
	if err := c.checkProxied(req.Context(), req.URL.Hostname()); err != nil {
		return req, err
	}
	if req.URL.Scheme != "http" {
		return req, nil // inside the tunnel the request line is the usual one
	}
	// RFC 9112, section 3.2.2: the absolute form. net/http writes it for a URL with a path; with an opaque part it takes
	// that for the whole, so that the host has to be a part of it.
	u := *req.URL
	u.Opaque = "//" + u.Host + req.URL.RequestURI()
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = "", "", "", false
	out := *req
	out.URL = &u
	return &out, nil
}

// checkProxied judges the target's address as far as that can be known on this side of the proxy.
func (c *Client) checkProxied(ctx context.Context, host string) error {
	if err := c.dialer.policy.CheckLiteral(host); err != nil {
		return err
	}
	policy := c.dialer.policy.For(host)
	resolver := c.dialer.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		if ctx.Err() == nil && (policy.OwnOrigin || policy.AllowPrivate) {
			return nil // trusted by name: the proxy may know it where this machine does not
		}
		return phaseOf(ctx, err)
	}
	if len(addrs) == 0 {
		return &PhaseError{Phase: retry.DNS}
	}
	for _, addr := range addrs {
		if err := policy.Check(addr); err != nil {
			return err
		}
	}
	return nil
}
