package target

import (
	"net/url"
	"strings"
)

// URL gives net/http an address whose request line is exactly PathQuery. A url.URL carries a path either decoded
// (and encodes it anew, by its own taste) or as Opaque (and turns a leading // into an authority), so that a path
// which begins with // must be one that net/url would write the same way: else ErrOnWire.
func (t Target) URL() (url.URL, error) {
	u := url.URL{Scheme: t.Scheme, Host: t.Host, Opaque: t.PathQuery}
	if !strings.HasPrefix(t.PathQuery, "//") {
		return u, nil
	}
	path, query, hasQuery := strings.Cut(t.PathQuery, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return url.URL{}, ErrOnWire
	}
	u.Opaque, u.Path, u.RawPath = "", decoded, path
	u.RawQuery, u.ForceQuery = query, hasQuery && query == ""
	if u.RequestURI() != t.PathQuery {
		return url.URL{}, ErrOnWire
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
	return t, t.checkWire()
}

// checkWire tells whether there is a URL of t: URL would make one to be thrown away, for every target that is read.
func (t Target) checkWire() error {
	if !strings.HasPrefix(t.PathQuery, "//") {
		return nil
	}
	_, err := t.URL()
	return err
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
