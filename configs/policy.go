package configs

import (
	"crypto/tls"
	"fmt"
	"regexp"
	"time"
)

// Policy is everything that decides how an endpoint is treated.
type Policy struct {
	Timeout     time.Duration // of one attempt: connect, headers and body together
	Concurrency int           // attempts at once
	Retry       Retry
	Breaker     Breaker
	Override    Override
	Limits      []Limit
	Burst       int // for the shortest of Limits
	Sign        Sign
	Success     Success
	// HTTP2 offers HTTP/2 to receivers over TLS; false keeps to HTTP/1.1.
	HTTP2   bool
	Headers Headers
	TLS     TLS
}

// Retry says when a failed attempt is tried again.
type Retry struct {
	// MaxAttempts counts all attempts, the first included. With a schedule it is the number of entries plus one.
	MaxAttempts   int
	BaseDelay     time.Duration
	MaxDelay      time.Duration
	MaxRetryAfter time.Duration
	// Schedule has explicit upper bounds of the delays; it counts only where HasSchedule is true, and may be empty then.
	Schedule    []time.Duration
	HasSchedule bool
	// Statuses are the transient status codes; nil means the built-in ones (408, 425, 429 and 5xx).
	Statuses []int
}

// Breaker says when an endpoint is left alone for a while.
type Breaker struct {
	FailureThreshold     int
	Cooldown             time.Duration
	MaxCooldown          time.Duration
	SlowP95              time.Duration // zero switches the lower threshold off
	SlowFailureThreshold int
}

// Override bounds what an application may ask for with Postern-Max-Attempts and Postern-Timeout.
type Override struct {
	MaxAttempts int
	MaxTimeout  time.Duration
}

// Limit allows at most N requests in any window of length Per.
type Limit struct {
	N   int
	Per time.Duration
}

// String writes the limit as the configuration does: 100/1m.
func (l Limit) String() string { return fmt.Sprintf("%d/%s", l.N, formatDuration(l.Per)) }

// The signature schemes.
const (
	SchemeNone     = "none"
	SchemeStandard = "standard"
	SchemeStripe   = "stripe"
	SchemeHub      = "hub"
	SchemeTemplate = "template"
)

// Sign says how requests are signed.
type Sign struct {
	Scheme string
	// Header carries the signature where Scheme is stripe or template; empty means Stripe's own.
	Header string
	// Template is how the header's value is made where Scheme is template, see signing.CheckTemplate.
	Template string
	// Secrets are the HMAC keys, newest first: for the scheme standard the decoded bytes, else those of the text.
	Secrets [][]byte

	texts []string // as written, resolved: what they mean depends on the scheme, which may be inherited
}

// Success has the body rules; nil means none.
type Success struct {
	BodyMatches *regexp.Regexp // the body must match
	BodyRejects *regexp.Regexp // the body must not match
}

// Headers are the endpoint's own request headers.
type Headers struct {
	Set []Header // in the order of the file
}

// Header is one header field. Its value is a secret.
type Header struct {
	Name, Value string
}

// TLS says how receivers are spoken to over TLS. Load has checked that the files, which are PEM, can be loaded.
type TLS struct {
	CAFile     string // replaces the system's roots
	CertFile   string // client certificate, with KeyFile
	KeyFile    string
	MinVersion string // 1.2 or 1.3
	ServerName string // for SNI and the certificate's name; empty: the host of the target
}

// Version is MinVersion as crypto/tls writes it.
func (t TLS) Version() uint16 {
	if t.MinVersion == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}
