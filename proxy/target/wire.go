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
		joined, t.bare = strings.TrimSuffix(basePath, "/")+path, false
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
// not looked at. A path that may lead out again does not lie under it: what the prefix's endpoint sends, its keys among it,
// is not for others on the same origin.
func (t Target) Under(prefix Target) bool {
	if t.Origin() != prefix.Origin() {
		return false
	}
	dir := strings.TrimSuffix(prefix.Path(), "/")
	rest, ok := strings.CutPrefix(t.Path(), dir)
	return ok && (rest == "" || rest[0] == '/') && (dir == "" || !climbs(rest))
}

// undone are the ways of writing dots and what stands beside them that servers undo before they look for "..".
var undone = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", `\`, "/", "%3b", ";", "%3B", ";", "%25", "%")

// climbs tells whether some server could find a segment ".." in the path (RFC 3986, section 5.2.4), whether it removes
// percent-encoding once or twice, takes a backslash for a slash, or a semicolon for the end of a segment.
func climbs(path string) bool {
	if !strings.ContainsAny(path, ".%") {
		return false
	}
	for range 2 {
		path = undone.Replace(path)
	}
	for segment := range strings.SplitSeq(path, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == ".." {
			return true
		}
	}
	return false
}
