package target

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Parse reads an absolute URL. Surrounding blanks are the caller's to trim or refuse: they are refused here.
func Parse(raw string) (Target, error) {
	if raw == "" {
		return Target{}, ErrEmpty
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if err := checkBytes(raw); err != nil {
		if ok && hasLetters(rest[strings.LastIndexByte(rest[:end], '@')+1:end]) {
			return Target{}, ErrHost // percent-encoding, which ErrRawByte advises, is for paths and queries
		}
		return Target{}, err
	}
	scheme = strings.ToLower(scheme)
	if !ok || (scheme != "http" && scheme != "https") {
		return Target{}, ErrScheme
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

// hasLetters tells whether a host has letters outside ASCII.
func hasLetters(host string) bool {
	return strings.ContainsFunc(host, func(c rune) bool { return c >= 0x80 })
}

func (t *Target) setPath() error {
	if t.PathQuery == "" || t.PathQuery[0] != '/' {
		t.PathQuery, t.bare = "/"+t.PathQuery, true
	}
	return t.checkWire()
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
	switch {
	case port == "":
		t.Host = host
	case len(host)+1+len(port) == len(authority) && strings.HasPrefix(authority, host) && strings.HasSuffix(authority, port):
		t.Host = authority // as it was written, which is the usual case
	default:
		t.Host = host + ":" + port
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
	return shortHost(host), port, nil
}

// shortHost gives a host its one form, so that an origin has one name: lower case, an IPv6 literal as short as it
// gets (RFC 5952).
func shortHost(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]")); err == nil {
			return "[" + addr.String() + "]"
		}
	}
	return strings.ToLower(host)
}

func validHost(host string) bool {
	if strings.HasPrefix(host, "[") {
		inner, ok := strings.CutSuffix(host[1:], "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	if host == "" || len(host) > 253+1 { // RFC 1035, section 2.3.4, and a trailing dot
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
