package delivery

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// staleRetries is how many dead idle connections one attempt may come upon. net/http drops them by itself as soon as it
// notices; this is for the moment before that.
const staleRetries = 3

// exchange is the last link: request out, answer in. The retrying client under it makes up for one thing alone, a
// reused connection that was closed before any byte of the request left; every other failure is the attempt's.
type exchange struct {
	client *retryablehttp.Client
	drain  time.Duration
}

func newExchange(drain time.Duration) *exchange {
	return &exchange{drain: drain, client: &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     dispatch{},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Logger:       nil, // the default one prints addresses with their queries
		RetryMax:     staleRetries,
		CheckRetry:   checkRetry,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}}
}

func (e *exchange) send(ctx context.Context, a *attempt) {
	if err := ctx.Err(); err != nil {
		a.stop()
		failed(ctx, a, err)
		a.result.Unsent = true
		return
	}
	resp, err := e.client.Do(&retryablehttp.Request{Request: a.standIn(ctx)})
	a.stop()
	if err != nil {
		failed(ctx, a, err)
		return
	}
	defer resp.Body.Close()
	e.answered(ctx, a, &answer{Response: resp, cancel: a.cancel})
}

// checkRetry allows another try only where it is still the first request on the wire.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	again := err != nil && resp == nil && ctx.Err() == nil && attemptOf(ctx).wire.unusedStale()
	return again, nil
}

// dispatch sends each attempt's request by its endpoint's RoundTripper. It has no CloseIdleConnections on purpose: the retrying
// client calls that after every failure, and would take the neighbours' connections with it. It also hides where a
// redirect leads: http.Client parses the address even if told not to follow, and fails if it cannot.
type dispatch struct{}

// RoundTrip implements http.RoundTripper.
func (dispatch) RoundTrip(r *http.Request) (*http.Response, error) {
	a := attemptOf(r.Context())
	a.wire.begin()
	resp, err := a.job.Endpoint.RoundTripper.RoundTrip(a.request(r))
	if err == nil && a.wire.misled() {
		resp.Body.Close()
		return nil, errForeign
	}
	if resp != nil && resp.StatusCode/100 == 3 {
		a.location = resp.Header.Get("Location")
		resp.Header.Del("Location")
	}
	return resp, err
}
