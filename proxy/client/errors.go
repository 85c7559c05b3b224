package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// UnreachableError means that nothing answered at the address.
type UnreachableError struct {
	// Address is where Postern was expected.
	Address string
	// Reason is short and repeats nothing of the request.
	Reason string
	err    error
}

// Error says where nobody answered and why.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no Postern answers at %s: %s", e.Address, e.Reason)
}

// Unwrap gives the cause. It may repeat the request's address: it is for errors.Is, not for printing.
func (e *UnreachableError) Unwrap() error { return e.err }

// ArgumentError means that nothing was sent, since no request can be made of the arguments.
type ArgumentError struct{ err error }

// Error says which argument is wrong, without repeating it.
func (e *ArgumentError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *ArgumentError) Unwrap() error { return e.err }

// RefusedError is an answer other than 2xx, as RFC 9457 describes it.
type RefusedError struct {
	Status int
	// Type is the stable URI of its kind, such as urn:postern:problem:token; empty where the answer has none.
	Type   string
	Title  string
	Detail string
}

// Error joins what the answer says about itself. The status tells more only where Postern's own kinds do not.
func (e *RefusedError) Error() string {
	text := cmp.Or(e.Title, http.StatusText(e.Status))
	switch {
	case strings.HasPrefix(e.Detail, e.Title) && e.Detail != "":
		text = e.Detail // it says the title again, and more
	case e.Detail != "":
		text += ": " + e.Detail
	}
	if strings.HasPrefix(e.Type, typePrefix) {
		return strings.TrimSuffix(text, ".")
	}
	return fmt.Sprintf("%s (status %d)", text, e.Status)
}

// typePrefix begins the types of Postern's own problems.
const typePrefix = "urn:postern:problem:"

// refusal reads a problem document; what is none keeps the status alone, since its text may be anybody's.
func refusal(a answer) error {
	e := &RefusedError{Status: a.status}
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		var problem struct{ Type, Title, Detail string }
		if json.Unmarshal(a.body, &problem) == nil {
			e.Type, e.Title, e.Detail = problem.Type, problem.Title, problem.Detail
		}
	}
	return e
}

// reason says in a few words why there was no answer, without url.Error's text, which repeats the address.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer in time"
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host name cannot be resolved (" + e.Name + ")"
	}
	return "the connection broke, or what listens there does not speak HTTP"
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
