package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// checkHeader refuses what cannot be sent, and what would not arrive. It never repeats a value, and no name that is not
// one: a line that was mistyped may be a secret.
func checkHeader(h Header) error {
	if !httpguts.ValidHeaderFieldName(h.Name) {
		return errors.New("a header's name is not valid; a name has letters, digits and hyphens, without blanks")
	}
	name := http.CanonicalHeaderKey(h.Name)
	switch {
	case name == "Host":
		return errors.New("the header Host is always the target's; leave it out")
	case name == "Content-Length":
		return errors.New("the header Content-Length always fits the body; leave it out")
	case stays(name):
		return fmt.Errorf("the header %s belongs to one connection or to a proxy, and is never passed on; leave it out", name)
	case !httpguts.ValidHeaderFieldValue(h.Value):
		return fmt.Errorf("the value of the header %s has a control character in it (a line break?); remove it", name)
	}
	return nil
}

// stays tells which headers ingest takes off: those of the connection (RFC 9110, section 7.6.1), and those by which
// proxies speak of themselves.
func stays(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Forwarded", "Via":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-")
}
