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
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Errors of Parse and Resolve, each a sentence for the person who wrote the target. None repeats any part of it.
var (
	ErrEmpty    = errors.New("the target is empty; give an absolute URL such as https://partner.example/postback")
	ErrScheme   = errors.New("the target must begin with http:// or https://")
	ErrHost     = errors.New("the target's host is missing or not valid; write non-ASCII host names in punycode (xn--…)")
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
}

// Parse reads an absolute URL. Surrounding blanks are the caller's to trim or refuse: they are refused here.
func Parse(raw string) (Target, error) {
	if raw == "" {
		return Target{}, ErrEmpty
	}
	if err := checkBytes(raw); err != nil {
		return Target{}, err
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !ok || (scheme != "http" && scheme != "https") {
		return Target{}, ErrScheme
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	t := Target{Scheme: scheme, PathQuery: rest[end:]}
	if err := t.setAuthority(rest[:end]); err != nil {
		return Target{}, err
	}
	return t, t.setPath()
}

// checkBytes refuses what net/http would put on the wire raw, or cut off.
func checkBytes(s string) error {
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c >= 0x7f:
			return ErrRawByte
		case c == '#':
			return ErrFragment
		}
	}
	return nil
}

func (t *Target) setPath() error {
	if t.PathQuery == "" || t.PathQuery[0] != '/' {
		t.PathQuery = "/" + t.PathQuery
	}
	_, err := t.URL()
	return err
}

func (t *Target) setAuthority(authority string) error {
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if err := t.setUser(authority[:at]); err != nil {
			return err
		}
		authority = authority[at+1:]
	}
	host, port, err := splitHostPort(authority)
	if err != nil {
		return err
	}
	if port == defaultPort(t.Scheme) {
		port = ""
	}
	t.Host = host
	if port != "" {
		t.Host += ":" + port
	}
	return nil
}

func (t *Target) setUser(info string) error {
	user, password, _ := strings.Cut(info, ":")
	var errU, errP error
	t.User, errU = url.PathUnescape(user)
	t.Password, errP = url.PathUnescape(password)
	t.HasUser = true
	if errU != nil || errP != nil || strings.Contains(t.User, ":") {
		return ErrUserInfo
	}
	return nil
}

func splitHostPort(authority string) (host, port string, err error) {
	host = authority
	if end := strings.LastIndexByte(authority, ':'); end > strings.LastIndexByte(authority, ']') {
		host, port = authority[:end], authority[end+1:]
		if port != "" {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return "", "", ErrPort
			}
			port = strconv.FormatUint(n, 10)
		}
	}
	if !validHost(host) {
		return "", "", ErrHost
	}
	return strings.ToLower(host), port, nil
}

func validHost(host string) bool {
	if strings.HasPrefix(host, "[") {
		inner, ok := strings.CutSuffix(host[1:], "]")
		return ok && strings.Contains(inner, ":") && net.ParseIP(inner) != nil
	}
	if host == "" || len(host) > 253+1 {
		return false
	}
	for i := range len(host) {
		c := host[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return host[0] != '.' && !strings.Contains(host, "..")
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
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

// WithoutQuery is origin and path: what may be shown of a configured url.
func (t Target) WithoutQuery() string { return t.Origin() + t.Path() }

// URL gives net/http an address whose request line is exactly PathQuery. A url.URL carries a path either decoded
// (and encodes it anew, by its own taste) or as Opaque (and turns a leading // into an authority), so that a path
// which begins with // must be one that net/url would write the same way: else ErrOnWire.
func (t Target) URL() (*url.URL, error) {
	u := &url.URL{Scheme: t.Scheme, Host: t.Host, Opaque: t.PathQuery}
	if !strings.HasPrefix(t.PathQuery, "//") {
		return u, nil
	}
	path, query, hasQuery := strings.Cut(t.PathQuery, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return nil, ErrOnWire
	}
	u.Opaque, u.Path, u.RawPath = "", decoded, path
	u.RawQuery, u.ForceQuery = query, hasQuery && query == ""
	if u.RequestURI() != t.PathQuery {
		return nil, ErrOnWire
	}
	return u, nil
}

// Join appends what followed /to/NAME to an endpoint's url: paths joined by one slash, the url's own query first.
// An empty suffix gives the url itself.
func (t Target) Join(suffix string) (Target, error) {
	if err := CheckSuffix(suffix); err != nil {
		return Target{}, err
	}
	path, query, hasQuery := strings.Cut(suffix, "?")
	basePath, baseQuery, baseHasQuery := strings.Cut(t.PathQuery, "?")
	joined := basePath
	if path != "" {
		joined = strings.TrimSuffix(basePath, "/") + path
	}
	switch {
	case baseHasQuery && hasQuery && baseQuery != "" && query != "":
		joined += "?" + baseQuery + "&" + query
	case baseHasQuery && baseQuery != "":
		joined += "?" + baseQuery
	case hasQuery:
		joined += "?" + query
	case baseHasQuery:
		joined += "?"
	}
	t.PathQuery = joined
	_, err := t.URL()
	return t, err
}

// CheckSuffix tells whether what followed /to/NAME can be put on a wire.
func CheckSuffix(suffix string) error {
	if suffix != "" && suffix[0] != '/' && suffix[0] != '?' {
		return ErrSuffix
	}
	return checkBytes(suffix)
}

// Under tells whether t lies under the prefix: the same origin, and whole path segments of it. A prefix's query is
// not looked at.
func (t Target) Under(prefix Target) bool {
	if t.Origin() != prefix.Origin() {
		return false
	}
	dir := strings.TrimSuffix(prefix.Path(), "/")
	rest, ok := strings.CutPrefix(t.Path(), dir)
	return ok && (rest == "" || rest[0] == '/')
}

// ShowQuery lists the parameters of t's query that keys lets through, in their order and as they were written, for
// log lines. Everything else of the query stays hidden.
func (t Target) ShowQuery(keys []string) string {
	var shown []string
	for pair := range strings.SplitSeq(t.Query(), "&") {
		name, _, _ := strings.Cut(pair, "=")
		for _, key := range keys {
			if name == key {
				shown = append(shown, pair)
			}
		}
	}
	return strings.Join(shown, "&")
}

// GoString keeps %#v of a struct that holds a Target from printing secrets.
func (t Target) GoString() string { return fmt.Sprintf("target.Target(%s)", t.Origin()) }
