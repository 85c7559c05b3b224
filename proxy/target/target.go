// Package target reads and writes the addresses that postbacks go to, without changing a byte of them.
//
// It promises that path and query come out exactly as they went in, that what cannot stand in an HTTP request line is
// refused with a sentence that says why, and that no error text repeats a query, a path or user info. It is pure: it
// resolves nothing and knows no policy. It does not use net/url to hold a target, because that decodes and re-encodes.
package target

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Errors of Parse, Join and CheckSuffix, each a sentence for the person who wrote the target. None repeats any part of it.
var (
	ErrEmpty    = errors.New("the target is empty; give an absolute URL such as https://partner.example/postback")
	ErrScheme   = errors.New("the target must begin with http:// or https://")
	ErrHost     = errors.New("the target's host is missing or not valid; write a name in ASCII (punycode, xn--…, for others), or an IPv6 address in brackets and without a zone")
	ErrPort     = errors.New("the target's port must be a number from 1 to 65535")
	ErrUserInfo = errors.New("the target's user info is not valid; percent-encode reserved characters in it")
	ErrFragment = errors.New("the target has a fragment (#…), which never reaches a server; remove it, or write %23 for a literal #")
	ErrRawByte  = errors.New("the target has a blank, control or non-ASCII byte in it; percent-encode it")
	ErrOnWire   = errors.New("the target's path begins with // and has bytes that a request line cannot carry unchanged; percent-encode them")
	ErrSuffix   = errors.New("what follows the endpoint's name must begin with / or ?")
)

// Target is one absolute http or https address.
type Target struct {
	Scheme string // http or https
	// Host is what the Host header says: lower case, without a default port.
	Host string
	// User and Password are decoded; HasUser tells an empty user from none.
	User, Password string
	HasUser        bool
	// PathQuery is the request line's target: it begins with a slash, and is otherwise as it was written.
	PathQuery string

	bare bool // no path was written: the slash in PathQuery is the request line's alone (RFC 9112, section 3.2.1)
}

// Origin is the shortest form of scheme, host and port: the name of an ad hoc endpoint. It never has user info.
func (t Target) Origin() string { return t.Scheme + "://" + t.Host }

// Hostname is the host alone, without port and without the brackets of an IPv6 literal: for TLS and for resolving.
func (t Target) Hostname() string {
	host, _ := t.hostPort()
	return strings.Trim(host, "[]")
}

// Port is the port to dial, the scheme's default one where none is written.
func (t Target) Port() string {
	_, port := t.hostPort()
	return cmp.Or(port, defaultPort(t.Scheme))
}

func (t Target) hostPort() (host, port string) {
	end := strings.LastIndexByte(t.Host, ':')
	if end <= strings.LastIndexByte(t.Host, ']') {
		return t.Host, ""
	}
	return t.Host[:end], t.Host[end+1:]
}

// String is the whole address without user info. It holds the query: show it only where that was asked for.
func (t Target) String() string { return t.Origin() + t.PathQuery }

// Path is the path as it was written, without the query.
func (t Target) Path() string {
	path, _, _ := strings.Cut(t.PathQuery, "?")
	return path
}

// Query is what follows the first question mark, as it was written.
func (t Target) Query() string {
	_, query, _ := strings.Cut(t.PathQuery, "?")
	return query
}

// WithoutQuery is origin and path as they were written, a bare origin without a slash: what may be shown of a configured
// url, and the name that the fleet knows it by.
func (t Target) WithoutQuery() string {
	if t.bare {
		return t.Origin()
	}
	return t.Origin() + t.Path()
}

// GoString keeps %#v of a struct that holds a Target from printing secrets.
func (t Target) GoString() string { return fmt.Sprintf("target.Target(%s)", t.Origin()) }

// LogValue makes the origin all that a log line shows of a Target: paths and queries of ad hoc targets stay out of logs.
func (t Target) LogValue() slog.Value { return slog.StringValue(t.Origin()) }
