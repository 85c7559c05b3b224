package delivery

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"golang.org/x/net/http/httpguts"

	"postern/proxy/retry"
	"postern/proxy/target"
)

// requestLink finds the target, asks whether it is allowed, and whether a request can be made of it.
type requestLink struct{ next link }

func (l *requestLink) send(ctx context.Context, a *attempt) {
	event := a.job.Event
	t, err := resolve(a.job)
	if err != nil || !httpguts.ValidHeaderFieldName(event.Method) || event.Method == http.MethodConnect {
		a.refuse(retry.InvalidRequest)
		return
	}
	if blocked := a.job.Endpoint.Blocked; blocked != nil && blocked(t) != nil {
		a.refuse(retry.BlockedAddress)
		return
	}
	u, err := t.URL()
	if err != nil {
		a.refuse(retry.InvalidRequest)
		return
	}
	a.target, a.url = t, u
	l.next.send(ctx, a)
}

// resolve reads a named endpoint's url now, so that a corrected configuration reaches events that wait.
func resolve(j *Job) (target.Target, error) {
	if j.Event.Named {
		return j.Endpoint.URL.Join(j.Event.Target)
	}
	return target.Parse(j.Event.Target)
}

// none is the header of every stand-in.
var none = http.Header{}

// standIn is what the clients above dispatch get for a request: they only need to know where it goes and for how long.
// http.Client copies all headers and their values, for redirects that are never followed; here it finds none.
func (a *attempt) standIn(ctx context.Context) *http.Request {
	a.context = attemptContext{ctx, a}
	r := &http.Request{
		Method: a.job.Event.Method, URL: &a.url, Header: none,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(a.wire.watch(&a.context))
}

// request makes the request that is sent, anew for every use of it: the one before may still be read.
func (a *attempt) request(standIn *http.Request) *http.Request {
	made := &struct {
		http.Request
		body bytes.Reader
	}{Request: *standIn}
	made.Header = a.header
	made.body.Reset(a.job.Event.Body)
	setBody(&made.Request, &made.body)
	return &made.Request
}

// setBody gives the request its body, but never a GetBody. net/http re-sends a
// request by itself when a reused connection breaks and it can "replay" the request: if the method is one of the four
// below, or an idempotency key stands under its canonical name (see fields.set), and the body is absent, http.NoBody or
// has GetBody. So those methods get an empty reader instead, which looks like a body that cannot be had twice. Naming
// the transfer coding identity keeps net/http from sending it chunked, or from looking whether there is anything in it;
// nothing of this is seen on the wire. The reader is a bytes.Reader as it is: net/http would send the header in a packet
// of its own before a body whose type it does not know.
func setBody(r *http.Request, body *bytes.Reader) {
	r.ContentLength = body.Size()
	if r.ContentLength > 0 {
		r.Body = io.NopCloser(body)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		r.Body, r.TransferEncoding = io.NopCloser(body), identity
	default:
		r.Body = http.NoBody // POST, PUT and PATCH say Content-Length: 0
	}
}

var identity = []string{"identity"}
