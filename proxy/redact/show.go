package redact

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// URL shows the origin of an address: scheme, host and port. Nil is an empty text.
func URL(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Query lists the parameters of a query that keys lets through, in their order and as they were written. Everything
// else of it stays hidden.
func Query(query string, keys []string) string {
	var shown []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		for _, key := range keys {
			if name == key {
				shown = append(shown, pair)
			}
		}
	}
	return strings.Join(shown, "&")
}

// Header names the fields of a header, in order, without their values.
func Header(h http.Header) string {
	return strings.Join(slices.Sorted(maps.Keys(h)), ", ")
}

// Panic shows what a panic was about: the text of the runtime's own errors, the type alone of any other value, which
// may hold a part of a request.
func Panic(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return typeName(value)
}

func typeName(value any) string { return fmt.Sprintf("%T", value) }

// address finds what looks like an absolute URL: scheme, user info, host, path, query and fragment. A quote or a blank
// ends it.
var address = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s"'<>/?#]*@)?([^\s"'<>/?#@]*)((?:/[^\s"'<>?#]*)?)(?:[?#][^\s"'<>]*)?`)

// password finds a password in a connection string of keywords, as libpq writes it.
var password = regexp.MustCompile(`(?i)\b(password|sslpassword)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s'"]+)`)

// Text shows a text that may have addresses or connection strings in it, without their user info, queries, fragments
// and passwords.
func Text(s string) string {
	if strings.Contains(s, "://") {
		s = address.ReplaceAllString(s, "$1$2$3")
	}
	if strings.Contains(s, "=") {
		s = password.ReplaceAllString(s, "$1=***")
	}
	return s
}
