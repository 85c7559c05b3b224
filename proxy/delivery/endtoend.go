package delivery

import (
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"postern/spool"
)

// endToEnd lists an answer's headers by name, without those of the connection and those that Connection names (RFC
// 9110, section 7.6.1). Content-Length stays: it is the receiver's word on a HEAD, and right for every whole body.
func endToEnd(h http.Header) []spool.Header {
	named := make(map[string]bool)
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			named[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	fields := make([]spool.Header, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if named[name] || (ofConnection(name) && name != "Content-Length") {
			continue
		}
		for _, value := range h[name] {
			fields = append(fields, spool.Header{Name: name, Value: value})
		}
	}
	return fields
}
