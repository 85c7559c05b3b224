// Package problem writes refusals as RFC 9457 problem details.
//
// It promises one shape for every refusal of every listener: a stable type that programs compare, a title that belongs
// to the type, the status, and a detail for the person who reads it. Callers keep secrets out of Detail; nothing here
// looks at a request. It leaves out problem+xml and content negotiation: whoever posts here reads JSON or the status.
package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ContentType is the media type of RFC 9457, section 6.1.
const ContentType = "application/problem+json"

// typePrefix makes types that need no web site behind them; RFC 9457 asks only that the URI is stable.
const typePrefix = "urn:postern:problem:"

// Problem is one refusal. Its zero value is a 500 without an explanation.
type Problem struct {
	// Status is the HTTP status code; zero means 500.
	Status int
	// Slug names the kind for programs, lower case with hyphens: spool-full becomes urn:postern:problem:spool-full.
	// Empty means about:blank, the status says it all.
	Slug string
	// Title is the kind in a few words, the same for every problem of one slug; empty means the status's own text.
	Title string
	// Detail says what is wrong with this request and what to do, without any secret.
	Detail string
	// RetryAfter is sent as whole seconds, rounded up, where it is above zero (RFC 9110, section 10.2.3).
	RetryAfter time.Duration
	// Header has fields that this answer needs besides, such as Allow or WWW-Authenticate. It may be nil.
	Header http.Header
}

// Type is the URI that programs compare.
func (p *Problem) Type() string {
	if p.Slug == "" {
		return "about:blank"
	}
	return typePrefix + p.Slug
}

// document is the JSON object; the order of its fields is the order on the wire.
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// Write answers a request with p. It must come before anything else is written to w.
func Write(w http.ResponseWriter, p Problem) {
	if p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	body := p.encode()
	h := w.Header()
	for name, values := range p.Header {
		h[name] = values
	}
	h.Set("Content-Type", ContentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client may be gone; there is nobody left to tell
}

// encode leaves <, > and & as they are: the reader is a terminal or a log, and nosniff keeps browsers from guessing.
func (p *Problem) encode() []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// Encoding two kinds of scalars into a buffer cannot fail.
	_ = enc.Encode(document{Type: p.Type(), Title: p.Title, Status: p.Status, Detail: p.Detail})
	return buf.Bytes()
}
