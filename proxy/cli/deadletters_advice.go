package cli

import (
	"strings"

	"postern/proxy/client"
)

// replayHint is the last step of most advice.
const replayHint = "then " + replayNow

const replayNow = "replay: postern dead-letters replay --endpoint NAME"

// readOne is how to see what the receiver said.
const readOne = "postern dead-letters show ID --reveal; IDs: postern dead-letters list --endpoint NAME"

// adviceFor says what to look at, by the class that most of an endpoint's dead letters ended with. NAME stands for the
// endpoint.
var adviceFor = map[string]string{
	"dns":             "The host name cannot be resolved: check its spelling in the url, and this machine's resolver, " + replayHint,
	"connect":         "Nothing takes connections there: check host and port of the url, the receiver, and firewalls between, " + replayHint,
	"tls":             "The TLS handshake fails: check the receiver's certificate, and the endpoint's tls section, " + replayHint,
	"timeout":         "No answer comes in time: ask the receiver why, or raise the endpoint's timeout, " + replayHint,
	"connection":      "The connection breaks before the answer is complete: look at the receiver and the proxies before it, " + replayHint,
	"redirect":        "Redirects are not followed: set the url to the receiver's Location (" + readOne + "), " + replayHint,
	"body_rule":       "The receiver answers 2xx with a body that success.body_matches or success.body_rejects takes for a no: read one (" + readOne + "), mend its cause or the rule, " + replayHint,
	"blocked_address": "The target's address is not allowed (private, loopback, or the like): correct the url, or allow the address in targets.allow if it is meant, " + replayHint,
	"invalid_request": "No valid request can be made of these events: compare one with the endpoint's url and headers.set (" + readOne + "), correct these, " + replayHint,
	"expired":         "Their TTL passed first: see what holds the endpoint back (postern endpoints show NAME), give the events a longer Postern-Ttl, " + replayHint + ", which starts the TTL anew",
	"http_404":        "The receiver does not know this address: check the path of the url, " + replayHint,
	"http_408":        "The receiver gave up waiting for the request: look at the connection to it, " + replayHint,
	"http_410":        "The receiver does not want these any more, and a named endpoint is paused by that: ask it, and drop them (postern dead-letters purge --endpoint NAME), or correct the url, resume the endpoint (postern endpoints resume NAME), " + replayHint,
}

// advice is one line for an endpoint whose dead letters make none of the known patterns.
func advice(a client.Analysis) string {
	text, known := adviceFor[a.PrimaryError]
	switch {
	case known:
	case strings.HasPrefix(a.PrimaryError, "http_5"):
		text = "The receiver fails by itself: ask it, or read its answer (" + readOne + "), and when it is well again, " + replayNow
	case strings.HasPrefix(a.PrimaryError, "http_"):
		text = "The receiver refuses these requests: read its answer (" + readOne + "), correct the cause, " + replayHint
	default:
		text = "Look at one of them (" + readOne + "), mend the cause, " + replayHint
	}
	name, _, _ := strings.Cut(a.Endpoint, " (") // the fleet adds the address where one name has several
	return strings.ReplaceAll(text, "NAME", name)
}
