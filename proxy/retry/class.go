package retry

import (
	"fmt"
	"slices"
)

// Class is how an attempt failed, in the contract's words. The empty class means that it was delivered.
type Class string

// The classes that do not depend on a status code. HTTP makes the others.
const (
	Delivered      Class = ""                // success
	DNS            Class = "dns"             // the name was not resolved
	Connect        Class = "connect"         // no connection to the address, or none through the proxy
	TLS            Class = "tls"             // the handshake failed, or the certificate is not trusted
	Timeout        Class = "timeout"         // the attempt's time was up, wherever it was spent
	Connection     Class = "connection"      // broken before a full response
	Redirect       Class = "redirect"        // a 3xx answer; redirects are never followed
	BodyRule       Class = "body_rule"       // a 2xx answer whose body says no
	BlockedAddress Class = "blocked_address" // the target's address is not allowed
	InvalidRequest Class = "invalid_request" // nothing that could be put on a wire
)

// HTTP is the class of an answer with that status code: redirect for 3xx (RFC 9110, section 15.4), else http_NNN.
func HTTP(status int) Class {
	if status >= 300 && status <= 399 {
		return Redirect
	}
	return Class(fmt.Sprintf("http_%03d", status))
}

// Outcome is what an attempt's end means for its event. The words are label values of postern_attempts_total.
type Outcome string

// The outcomes.
const (
	OutcomeDelivered Outcome = "delivered"
	OutcomeTransient Outcome = "transient" // worth another attempt
	OutcomePermanent Outcome = "permanent" // no retry mends it
)

// Outcome classes an attempt that ended with class and status (0: no response headers came).
func (p Policy) Outcome(class Class, status int) Outcome {
	switch class {
	case Delivered:
		return OutcomeDelivered
	case DNS, Connect, TLS, Timeout, Connection, BodyRule:
		return OutcomeTransient
	case BlockedAddress, InvalidRequest:
		return OutcomePermanent
	}
	if p.transient(status) {
		return OutcomeTransient
	}
	return OutcomePermanent
}

// transient tells whether an answer with that status is worth another attempt. What is over 599 or under 100 counts
// as a server error, as RFC 9110, section 15, asks of clients.
func (p Policy) transient(status int) bool {
	if p.Statuses != nil {
		return slices.Contains(p.Statuses, status)
	}
	switch status {
	case 408, 425, 429: // request timeout, too early, too many requests
		return true
	}
	return status >= 500 || status < 100
}
