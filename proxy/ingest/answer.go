package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"postern/spool"
)

// writeAccepted answers 202, or 200 for a duplicate, with the event that is in the spool. It must be the last that is
// written: net/http adds the Content-Length of a body that is small and complete when the handler returns.
func writeAccepted(w http.ResponseWriter, status int, res spool.AppendResult) {
	buf := bodies.Get().(*[]byte)
	defer bodies.Put(buf)
	body := append((*buf)[:0], `{"id":`...)
	body = appendJSON(body, res.ID)
	body = append(body, `,"endpoint":`...)
	body = appendJSON(body, res.Endpoint)
	body = append(body, `,"state":"`...)
	body = append(body, max(res.State, spool.StatePending).String()...)
	body = append(body, `","duplicate":`...)
	body = strconv.AppendBool(body, res.Duplicate)
	body = append(body, '}')
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Postern-Event-Id"] = []string{res.ID}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left has its event on disk all the same
	*buf = body
}

// bodies are buffers of writeAccepted.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

var jsonType = []string{"application/json"}

// appendJSON appends a string literal. IDs and origins need no escapes; an endpoint's name might.
func appendJSON(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return appendEscaped(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendEscaped(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// await waits for the first attempt's end; ok tells that the answer is one to pass on. It ends when the client leaves.
// It does not end with the server's deadline for reading: net/http lifts that once it has the whole request.
func (h *Handler) await(ctx context.Context, first <-chan Answer, wait time.Duration) (Answer, bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	ctx, stop := h.watch(ctx)
	defer stop()
	select {
	case answer, ok := <-first:
		return passOn(answer, ok)
	case <-timer.C:
	case <-ctx.Done():
	case <-h.dismissed:
	}
	select {
	case answer, ok := <-first: // it came in the same moment
		return passOn(answer, ok)
	default:
		return Answer{}, false
	}
}

func passOn(answer Answer, ok bool) (Answer, bool) {
	return answer, ok && answer.Delivered && !answer.TooBig && answer.Status >= 200 && answer.Status <= 599
}

// writeAnswer passes the receiver's answer on, without the headers that were for its connection with Postern.
func writeAnswer(w http.ResponseWriter, method, id string, answer Answer) {
	h := w.Header()
	h["Content-Type"] = nil // keeps net/http from guessing one where the receiver sent none
	var connection []string
	length := ""
	for _, field := range answer.Headers {
		switch http.CanonicalHeaderKey(field.Name) {
		case "Connection":
			connection = append(connection, field.Value)
		case "Content-Length":
			length = field.Value
		}
	}
	named := connectionNames(connection)
	for _, field := range answer.Headers {
		name := http.CanonicalHeaderKey(field.Name)
		if !hopByHop(name) && !slices.Contains(named, name) {
			h[name] = append(h[name], field.Value)
		}
	}
	h["Preference-Applied"] = append(h["Preference-Applied"], "wait")
	h["Postern-Event-Id"] = []string{id}
	switch {
	case answer.Status == http.StatusNoContent || answer.Status == http.StatusNotModified:
		answer.Body = nil // RFC 9110, sections 15.3.5 and 15.4.5
	case method != http.MethodHead:
		h["Content-Length"] = []string{strconv.Itoa(len(answer.Body))}
	case length != "":
		h["Content-Length"] = []string{length} // what a GET would have got
	}
	w.WriteHeader(answer.Status)
	if len(answer.Body) > 0 && method != http.MethodHead {
		_, _ = w.Write(answer.Body)
	}
}
