package delivery

import (
	"context"
	"io"
	"net/http"
	"time"

	"postern/proxy/retry"
	"postern/spool"
)

const (
	// maxBody is how much of an answer's body is read.
	maxBody = 64 << 10
	// maxKept is how much of a failed attempt's is kept.
	maxKept = 1 << 10
)

// answer is a response, and the means to end it while a read of its body is waiting.
type answer struct {
	*http.Response
	cancel context.CancelFunc
}

// answered ends an attempt whose response headers are in.
func (e *exchange) answered(ctx context.Context, a *attempt, ans *answer) {
	a.result.Attempt.StatusCode = ans.StatusCode
	a.result.Sampled = true
	a.result.RetryAfter, a.result.HasRetryAfter = retry.ParseRetryAfter(ans.Header.Get("Retry-After"), time.Now())
	switch {
	case ans.StatusCode < 200 || ans.StatusCode > 299:
		e.rejected(a, ans)
	case a.job.Endpoint.BodyMatches != nil || a.job.Endpoint.BodyRejects != nil:
		judged(ctx, a, ans)
	case a.job.WantBody:
		body, whole, err := ans.read()
		a.result.Response = ans.response(body, whole && err == nil)
	default:
		ans.discard(e.drain)
	}
}

// rejected fails the attempt by its status and keeps the beginning of the body. The status stands, whatever becomes of
// the body.
func (e *exchange) rejected(a *attempt, ans *answer) {
	a.fail(retry.HTTP(ans.StatusCode))
	kept := &spool.Answer{StatusCode: ans.StatusCode, Location: a.location}
	a.result.Answer = kept
	if ans.StatusCode == http.StatusSwitchingProtocols {
		return // what follows it is not a body
	}
	timer := time.AfterFunc(e.drain, ans.cancel)
	defer timer.Stop()
	begin := make([]byte, maxKept)
	n, _ := io.ReadFull(ans.Body, begin)
	kept.Body = readable(ans.Header, begin[:n])
	_, _ = io.CopyN(io.Discard, ans.Body, maxBody-maxKept)
}

// read takes the body, up to maxBody of it; whole tells that there was no more.
func (ans *answer) read() (body []byte, whole bool, err error) {
	body, err = io.ReadAll(io.LimitReader(ans.Body, maxBody+1))
	if len(body) > maxBody {
		return body[:maxBody], false, nil
	}
	return body, true, err
}

// discard reads what is left of a body that nobody needs, so that the connection can be used again, but not for long.
func (ans *answer) discard(limit time.Duration) {
	if ans.Body == http.NoBody {
		return
	}
	timer := time.AfterFunc(limit, ans.cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, ans.Body, maxBody)
}

// response is what a waiting client gets.
func (ans *answer) response(body []byte, whole bool) *Response {
	return &Response{Status: ans.StatusCode, Headers: endToEnd(ans.Header), Body: body, TooBig: !whole}
}
