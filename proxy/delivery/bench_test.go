package delivery_test

import (
	"net/http"
	"testing"

	"postern/proxy/delivery"
	"postern/spool"
)

// BenchmarkAttempt sends the usual event: through the chain alone, to a transport that answers at once, and through
// egress and net/http to a receiver on loopback.
func BenchmarkAttempt(b *testing.B) {
	r := newRecv(b, say(ok204))
	for _, c := range []struct {
		name string
		via  http.RoundTripper
	}{{"chain", instant{}}, {"loopback", newTransport(b, 1)}} {
		b.Run(c.name, func(b *testing.B) {
			e := newEndpoint(b)
			e.RoundTripper = c.via
			event := newEvent("POST", r.url("/postback?cid=1"), string(make([]byte, 500)),
				spool.Header{Name: "Content-Type", Value: "application/json"}, spool.Header{Name: "User-Agent", Value: "shop/1"})
			s, job := newSender(), &delivery.Job{Event: event, Number: 1, Endpoint: e}
			b.ReportAllocs()
			for b.Loop() {
				if got := s.Send(b.Context(), job); got.Class != "" {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}

// instant is a transport without a network: it answers at once.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}
