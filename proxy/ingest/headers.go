package ingest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unsafe"

	"postern/spool"
)

// passOn gives the event its end-to-end headers: the values of a name in their order, names sorted (net/http keeps no
// order between names). steered tells that there are headers for Postern among the rest.
func (h *Handler) passOn(ev *spool.Event, header http.Header) (steered bool, p *refusal) {
	named := connectionNames(header["Connection"])
	hasAgent := false
	ev.Headers = make([]spool.Header, 0, len(header)+1)
	for name, values := range header {
		switch {
		case strings.HasPrefix(name, "Postern-"):
			if p := checkKnown(name); p != nil {
				return false, p
			}
			steered = true
			continue
		case hopByHop(name) || slices.Contains(named, name) || addedByNetHTTP(name, values):
			continue
		case name == "Prefer":
			_, values = readPrefer(values)
		case name == "Idempotency-Key":
			if len(values) > 1 {
				return false, headerRefusal(name, "it is given more than once")
			}
			ev.IdempotencyKey = values[0]
		case name == "User-Agent":
			hasAgent = true
		}
		for _, value := range values {
			ev.Headers = append(ev.Headers, spool.Header{Name: name, Value: value})
		}
	}
	if !hasAgent {
		ev.Headers = append(ev.Headers, spool.Header{Name: "User-Agent", Value: h.userAgent})
	}
	slices.SortStableFunc(ev.Headers, func(a, b spool.Header) int { return cmp.Compare(a.Name, b.Name) })
	return steered, nil
}

// hopByHop tells which headers are not passed on, in either direction: those of the connection (RFC 9110, section
// 7.6.1), those that net/http makes anew, and those that would tell the receiver of a proxy. Names are canonical.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host",
		"Expect", "Forwarded", "Via":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-")
}

// connectionNames lists the headers that Connection says belong to the connection, canonical.
func connectionNames(lines []string) []string {
	var names []string
	for _, line := range lines {
		for option := range strings.SplitSeq(line, ",") {
			option = strings.Trim(option, " \t")
			if option != "" && !strings.EqualFold(option, "keep-alive") && !strings.EqualFold(option, "close") {
				names = append(names, http.CanonicalHeaderKey(option))
			}
		}
	}
	return names
}

// noCache is the very string that net/http puts into Cache-Control: equal literals are one string in a program.
const noCache = "no-cache"

// addedByNetHTTP finds the one header that net/http invents: a Pragma: no-cache without a Cache-Control gets
// Cache-Control: no-cache beside it. What the application sent was read into memory of its own, so that the address
// tells the two apart. Were it ever to differ, the header would pass on as net/http gave it; a test watches over it.
func addedByNetHTTP(name string, values []string) bool {
	return name == "Cache-Control" && len(values) == 1 && values[0] == noCache &&
		unsafe.StringData(values[0]) == unsafe.StringData(noCache)
}
