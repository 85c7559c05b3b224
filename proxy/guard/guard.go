// Package guard decides who may talk to a listener: programs beside it, not web pages of other sites.
//
// A browser lets any page send requests to localhost, and a host name that an attacker controls can be made to resolve
// to 127.0.0.1. So the Host must be one that the listener is reached by, the Origin must be absent or of such a host,
// and Sec-Fetch-Site must not be cross-site. A listener that is not loopback asks for a token, which no page knows;
// it, a Unix socket and the probes listener take any Host.
//
// It promises pure decisions on header fields and the request line: it reads no body and writes no answer; of files it
// reads a token's alone. It leaves out what a token's owner may do (there is one kind) and any limit on guessing: tokens
// are long and random.
package guard

import (
	"net/http"
	"strings"

	"postern/proxy/problem"
)

// Config says how a listener is reached.
type Config struct {
	// Listen are the addresses of the listener, host:port or host; the host may be a name. Ports are not compared.
	// localhost, 127.0.0.1 and [::1] are always among them.
	Listen []string
	// AnyHost takes every Host: for a Unix socket and the probes listener. Having Tokens implies it.
	AnyHost bool
	// Tokens gives the tokens in force, read anew for each request so that one can be rotated; every one of them
	// opens. Nil means that none is asked for; a function that gives an empty list lets nobody in.
	Tokens func() [][]byte
	// TokenHeader is the field that carries the token, as the bare token; empty means Authorization: Bearer.
	TokenHeader string
}

// Guard checks requests. It is safe for concurrent use.
type Guard struct {
	hosts       hostSet
	anyHost     bool
	tokens      func() [][]byte
	tokenHeader string
}

// New makes a Guard.
func New(cfg Config) *Guard {
	return &Guard{
		hosts:       newHostSet(cfg.Listen),
		anyHost:     cfg.AnyHost || cfg.Tokens != nil,
		tokens:      cfg.Tokens,
		tokenHeader: http.CanonicalHeaderKey(cfg.TokenHeader),
	}
}

// Check returns nil where r may go on, else the answer: 401 for a token that is missing or wrong, 403 for a page of
// another site. Requests in absolute form (a forward proxy's) carry their target's Host and are asked for the token
// alone.
func (g *Guard) Check(r *http.Request) *problem.Problem {
	if p := g.checkToken(r); p != nil {
		return p
	}
	if !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*" {
		return nil
	}
	return g.CheckPage(r)
}

// CheckPage is the part of Check that keeps web pages out, whatever form the request has. Ingest uses it for requests
// in absolute form that name the listener itself.
func (g *Guard) CheckPage(r *http.Request) *problem.Problem {
	// HTTP/1.0 knows no Host; browsers always send one.
	if !g.anyHost && r.Host != "" && !g.hosts.has(r.Host) {
		return forbidden("The Host of this request is not one of this listener's. Use localhost, or the host name that it is configured to listen on.")
	}
	for _, origin := range r.Header["Origin"] {
		if !g.ownOrigin(origin, r.Host) {
			return forbidden("The request comes from a web page of another site (Origin). Pages may not post through this listener.")
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if strings.EqualFold(site, "cross-site") {
			return forbidden("The request comes from a web page of another site (Sec-Fetch-Site: cross-site). Open this address directly.")
		}
	}
	return nil
}

// ownOrigin tells whether an Origin is of a host that the listener is reached by. Where any Host is taken, it is the
// host that this request names. The opaque origin null is nobody's.
func (g *Guard) ownOrigin(origin, host string) bool {
	scheme, authority, ok := strings.Cut(origin, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return false
	}
	if !g.anyHost {
		return g.hosts.has(authority)
	}
	theirs, ok := hostOnly(authority)
	if !ok {
		return false
	}
	ours, ok := hostOnly(host)
	return ok && ours == theirs
}

func forbidden(detail string) *problem.Problem {
	return &problem.Problem{Status: http.StatusForbidden, Slug: "foreign-page", Title: "Requests of other sites are refused", Detail: detail}
}
