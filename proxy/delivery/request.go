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

// requestLink finds the target, asks whether it is allowed, and builds the request without its headers.
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
	a.target = t
	a.request = &http.Request{
		Method: event.Method, URL: u, Host: t.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	setBody(a.request, event.Body)
	l.next.send(ctx, a)
}

// resolve reads a named endpoint's url now, so that a corrected configuration reaches events that wait.
func resolve(j *Job) (target.Target, error) {
	if j.Event.Named {
		return j.Endpoint.URL.Join(j.Event.Target)
	}
	return target.Parse(j.Event.Target)
}

// setBody gives the request its body, anew for every use of the request, and never a GetBody. net/http re-sends a
// request by itself when a reused connection breaks and it can "replay" the request: if the method is one of the four
// below, or an idempotency key stands under its canonical name (see fields.set), and the body is absent, http.NoBody or
// has GetBody. So those methods get an empty reader instead, which looks like a body that cannot be had twice. Naming
// the transfer coding identity keeps net/http from sending it chunked, or from looking whether there is anything in it;
// nothing of this is seen on the wire.
func setBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		r.Body = io.NopCloser(bytes.NewReader(nil))
		r.TransferEncoding = []string{"identity"}
	default:
		r.Body = http.NoBody // POST, PUT and PATCH say Content-Length: 0
	}
}
