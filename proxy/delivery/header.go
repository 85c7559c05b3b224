package delivery

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/textproto"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"

	"postern/proxy/retry"
	"postern/proxy/target"
	"postern/spool"
)

// errHeader means that a header cannot be put on a wire. It does not say which: the caller only needs the class.
var errHeader = errors.New("a header's name or value is not valid")

// headerLink makes the headers, the signature last. It runs for every attempt, so that timestamps are fresh.
type headerLink struct{ next link }

func (l *headerLink) send(ctx context.Context, a *attempt) {
	now := time.Now()
	header, err := buildHeader(a.job, a.target, now)
	if err != nil {
		a.refuse(retry.InvalidRequest)
		return
	}
	a.header = header
	l.next.send(ctx, a)
}

// buildHeader puts together what is sent: the event's headers as they are, Basic authorization from the target's user
// info unless the application sent its own, then what replaces headers of the same name: the endpoint's, Postern's, and
// the signature.
func buildHeader(j *Job, t target.Target, now time.Time) (http.Header, error) {
	own := [...]spool.Header{
		{Name: "X-Delivery-Timestamp", Value: strconv.FormatInt(now.Unix(), 10)},
		{Name: "Postern-Event-Id", Value: j.Event.ID},
		{Name: "Postern-Attempt", Value: strconv.Itoa(j.Number)},
	}
	var proof []spool.Header
	if j.Endpoint.Sign != nil {
		proof = j.Endpoint.Sign.Sign(j.Event.ID, now, j.Event.Body)
	}
	// The exact number, and one for User-Agent: up to eight fit into the smallest of maps.
	h := newFields(len(j.Event.Headers) + len(j.Endpoint.Set) + len(own) + len(proof) + 1)
	for _, field := range j.Event.Headers {
		if err := h.set(field, false); err != nil {
			return nil, err
		}
	}
	if _, has := h.header["Authorization"]; t.HasUser && !has {
		pair := base64.StdEncoding.EncodeToString([]byte(t.User + ":" + t.Password)) // RFC 7617
		h.header["Authorization"] = []string{"Basic " + pair}
	}
	for _, replace := range [...][]spool.Header{j.Endpoint.Set, own[:], proof} {
		for _, field := range replace {
			if err := h.set(field, true); err != nil {
				return nil, err
			}
		}
	}
	if _, has := h.header["User-Agent"]; !has {
		h.header["User-Agent"] = nil // keeps net/http from sending one of its own
	}
	return h.header, nil
}

// fields is a header in the making. The values of all names are in one slice: one for each would be most of its garbage.
type fields struct {
	header http.Header
	values []string
}

func newFields(n int) fields { return fields{make(http.Header, n), make([]string, 0, n)} }

// one is a slice of one value, which whoever appends to it copies.
func (f *fields) one(value string) []string {
	f.values = append(f.values, value)
	n := len(f.values)
	return f.values[n-1 : n : n]
}

// set adds or replaces one field. What belongs to the connection or is made from the target and the body is
// left out (RFC 9110, section 7.6.1); ingest has removed it already, an endpoint's own headers may hold it.
func (f *fields) set(field spool.Header, replace bool) error {
	if !httpguts.ValidHeaderFieldName(field.Name) || !httpguts.ValidHeaderFieldValue(field.Value) {
		return errHeader
	}
	key := textproto.CanonicalMIMEHeaderKey(field.Name)
	switch key {
	case "Idempotency-Key":
		key = "idempotency-key" // under its canonical name it would let net/http send an empty POST twice
	case "X-Idempotency-Key":
		key = "x-idempotency-key"
	default:
		if ofConnection(key) {
			return nil
		}
	}
	if before := f.header[key]; len(before) > 0 && !replace {
		f.header[key] = append(before, field.Value)
		return nil
	}
	f.header[key] = f.one(field.Value)
	return nil
}

// ofConnection tells whether a header, by its canonical name, is the connection's or the message framing's.
func ofConnection(key string) bool {
	switch key {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Keep-Alive", "Te", "Upgrade", "Expect",
		"Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate":
		return true
	}
	return false
}
