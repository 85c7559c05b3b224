package delivery

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"

	"postern/proxy/retry"
	"postern/spool"
)

// judged applies the endpoint's body rules to a 2xx answer. They need the body: one that breaks off, or comes too late,
// fails the attempt.
func judged(ctx context.Context, a *attempt, ans *answer) {
	raw, whole, err := ans.read()
	if err != nil {
		a.stop()
		failed(ctx, a, err)
		a.result.Sampled = true // the headers came
		return
	}
	body, err := decode(ans.Header, raw, whole)
	if err != nil || !passes(a.job.Endpoint, body) {
		a.fail(retry.BodyRule)
		a.result.Answer = &spool.Answer{StatusCode: ans.StatusCode, Body: head(body)}
		return
	}
	if a.job.WantBody {
		a.result.Response = ans.response(raw, whole)
	}
}

func passes(e *Endpoint, body []byte) bool {
	if e.BodyMatches != nil && !e.BodyMatches.Match(body) {
		return false
	}
	return e.BodyRejects == nil || !e.BodyRejects.Match(body)
}

// decode undoes gzip, the one coding that rules look through, up to maxBody of its content. What does not decode is an
// error, unless it is for want of the part that was not read. Other codings are matched as they came.
func decode(h http.Header, raw []byte, whole bool) ([]byte, error) {
	if !isGzip(h) || len(raw) == 0 {
		return raw, nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return raw, err
	}
	body, err := io.ReadAll(io.LimitReader(zip, maxBody))
	if err == io.ErrUnexpectedEOF && !whole {
		err = nil
	}
	return body, err
}

func isGzip(h http.Header) bool {
	coding := strings.TrimSpace(h.Get("Content-Encoding"))
	return strings.EqualFold(coding, "gzip") || strings.EqualFold(coding, "x-gzip") // RFC 9110, section 8.4.1.3
}

// readable is the beginning of a body as a person wants to see it.
func readable(h http.Header, raw []byte) []byte {
	if body, err := decode(h, raw, false); err == nil && len(body) > 0 {
		raw = body
	}
	return head(raw)
}

func head(body []byte) []byte { return bytes.Clone(body[:min(len(body), maxKept)]) }
