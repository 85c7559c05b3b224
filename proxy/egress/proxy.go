package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

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

// outbound is the proxy that everything goes through. Its own address is not judged: the operator wrote it down. One
// that is spoken to over TLS gets that TLS from dialProxy, with the system's roots and not with the endpoint's CA and
// client certificate; net/http then sees a plain one.
type outbound struct {
	addr    string
	overTLS bool
	auth    string // the value of Proxy-Authorization; empty for none
	plain   *url.URL
}

func newOutbound(raw string) (*outbound, error) {
	u, err := parseProxy(raw)
	if err != nil {
		return nil, err
	}
	p := &outbound{addr: net.JoinHostPort(u.Hostname(), proxyPort(u)), overTLS: u.Scheme == "https"}
	p.plain = &url.URL{Scheme: "http", Host: p.addr, User: u.User}
	if u.User != nil {
		password, _ := u.User.Password()
		p.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) // RFC 7617
	}
	return p, nil
}

// forPlain is net/http's question. For https it must not know of the proxy: the tunnel is made by dialTLS, so that its
// TLS, its counting and its protocol are those of a direct connection.
func (p *outbound) forPlain(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme == "http" {
		return p.plain, nil
	}
	return nil, nil
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

// dialProxy connects to the proxy, whatever addr is.
func (d *dialer) dialProxy(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	c, err := dialWith(ctx, &net.Dialer{Resolver: d.resolver}, network, d.proxy.addr)
	if err != nil || !d.proxy.overTLS {
		return c, err
	}
	secure, err := handshake(ctx, c, &tls.Config{MinVersion: tls.VersionTLS12}, d.proxy.addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: secure}, nil
}

// errTunnel means that the proxy did not connect us, or would not pass a plain-http request on.
var errTunnel = errors.New("the outbound proxy refused to connect")

// tunnel asks the proxy for a connection to addr (RFC 9110, section 9.3.6).
func (d *dialer) tunnel(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.dialProxy(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	end := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err = d.proxy.connect(c, addr)
	if !end() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return c, nil
	}
	c.Close()
	return nil, phaseOf(ctx, err)
}

func (p *outbound) connect(c net.Conn, addr string) error {
	header := http.Header{"User-Agent": {""}} // none
	if p.auth != "" {
		header.Set("Proxy-Authorization", p.auth)
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: header}
	if err := ask.Write(c); err != nil {
		return err
	}
	// What is buffered beyond the answer would be lost. Nothing is: in TLS the client speaks first.
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(c, maxResponseHeader)), ask)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return errTunnel
	}
	return nil
}

// throughProxy judges the target and gives the request the form that a proxy reads. On an error it returns the request
// as it was.
func (g *generation) throughProxy(req *http.Request) (*http.Request, error) {
	if err := g.dialer.checkProxied(req.Context(), req.URL.Hostname()); err != nil {
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

// judge tells an answer to a plain-http request that can only be the proxy's own: it wants other credentials (RFC 9110,
// section 15.5.8). The request got no further, as behind a tunnel that was refused, and the receiver has no part in it.
func (p *outbound) judge(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode != http.StatusProxyAuthRequired {
		return resp, nil
	}
	resp.Body.Close()
	return nil, &PhaseError{Phase: retry.Connect, Err: errTunnel}
}

// checkProxied judges the target's address as far as that can be known on this side of the proxy.
func (d *dialer) checkProxied(ctx context.Context, host string) error {
	if err := d.policy.CheckLiteral(host); err != nil {
		return err
	}
	policy := d.policy.For(host)
	resolver := d.resolver
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
