package delivery_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/delivery"
	"postern/proxy/retry"
)

// answering reads one request and hands the connection on.
func answering(reply func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := readRequest(bufio.NewReader(c)); err == nil {
			reply(c)
		}
	}
}

// trickle writes the text and then a byte every 50 ms, until nobody listens.
func trickle(text string) func(net.Conn) {
	return answering(func(c net.Conn) {
		_, err := io.WriteString(c, text)
		for err == nil {
			time.Sleep(50 * time.Millisecond)
			_, err = io.WriteString(c, ".")
		}
	})
}

// after answers after a while.
func after(d time.Duration, text string) func(net.Conn) {
	return answering(func(c net.Conn) {
		time.Sleep(d)
		_, _ = io.WriteString(c, text)
	})
}

func mute(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

const endless = " OK\r\nContent-Length: 1000000\r\n\r\n"

var anything = regexp.MustCompile("^")

func TestTiming(t *testing.T) {
	for _, c := range []struct {
		name     string
		serve    func(net.Conn)
		timeout  time.Duration // of the event; the endpoint's is 15 s
		rule     *regexp.Regexp
		wait     bool
		class    retry.Class
		status   int
		duration time.Duration // recorded
		took     time.Duration // of the slot
	}{
		{name: "prompt", serve: after(0, ok204), status: 204},
		{name: "slow", serve: after(3*time.Second, ok204), status: 204, duration: 3 * time.Second, took: 3 * time.Second},
		{name: "no answer", serve: mute, class: retry.Timeout, duration: 15 * time.Second, took: 15 * time.Second},
		{name: "the event's own timeout, shorter", serve: mute, timeout: time.Second, class: retry.Timeout, duration: time.Second, took: time.Second},
		{name: "the event's own timeout, longer", serve: after(40*time.Second, ok204), timeout: time.Minute, status: 204,
			duration: 40 * time.Second, took: 40 * time.Second},
		{name: "too late", serve: after(15*time.Second+1, ok204), class: retry.Timeout, duration: 15 * time.Second, took: 15 * time.Second},
		{name: "a header that trickles", serve: trickle("HTTP/1.1 200 OK\r\nX: "), class: retry.Timeout, duration: 15 * time.Second, took: 15 * time.Second},
		{name: "a success whose body trickles", serve: trickle("HTTP/1.1 200" + endless), status: 200, took: 500 * time.Millisecond},
		{name: "under a rule it has to come in time", serve: trickle("HTTP/1.1 200" + endless), rule: anything, class: retry.Timeout, status: 200,
			duration: 15 * time.Second, took: 15 * time.Second},
		{name: "for a waiting client it may take its time", serve: trickle("HTTP/1.1 200" + endless), wait: true, status: 200, took: 15 * time.Second},
		{name: "a failure whose body trickles", serve: trickle("HTTP/1.1 503" + endless), class: "http_503", status: 503, took: 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := piped(c.serve)
				event := newEvent("POST", "http://a.example/", "x")
				event.Timeout = c.timeout
				start := time.Now()
				got := newSender().Send(t.Context(), &delivery.Job{Event: event, Number: 1, WantBody: c.wait,
					Endpoint: &delivery.Endpoint{Timeout: 15 * time.Second, RoundTripper: transport, BodyMatches: c.rule}})
				took := time.Since(start)
				transport.CloseIdleConnections()
				time.Sleep(time.Minute) // for the receiver to wake up and find nobody there
				if got.Class != c.class || got.Attempt.StatusCode != c.status || got.Attempt.Duration != c.duration || took != c.took {
					t.Errorf("took %v, %+v", took, got)
				}
				if !got.Sampled || got.Cut || got.Stale || got.Unsent {
					t.Errorf("%+v", got)
				}
				if c.wait && !got.Response.TooBig {
					t.Error("half a body passes for a whole one")
				}
			})
		})
	}
}

func TestTimeoutWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil, errors.New("unreachable")
		}}
		got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent("POST", "http://a.example/", "x"), Number: 1,
			Endpoint: &delivery.Endpoint{Timeout: 15 * time.Second, RoundTripper: transport}})
		if got.Class != retry.Timeout || !got.Unsent || !got.Sampled || got.Attempt.Duration != 15*time.Second {
			t.Errorf("%+v", got)
		}
		transport.CloseIdleConnections()
		time.Sleep(time.Minute) // the abandoned dial ends
	})
}

// TestCut: a stop ends the attempt at once, whatever it waits for, unless its outcome is known already.
func TestCut(t *testing.T) {
	stopping := errors.New("stopping")
	for _, c := range []struct {
		name  string
		serve func(net.Conn)
		rule  *regexp.Regexp
		cut   bool
		class retry.Class
	}{
		{name: "waiting for headers", serve: mute, cut: true},
		{name: "waiting for a body that a rule needs", serve: trickle("HTTP/1.1 200" + endless), rule: anything, cut: true},
		{name: "reading on after a success", serve: trickle("HTTP/1.1 200" + endless)},
		{name: "reading on after a failure", serve: trickle("HTTP/1.1 503" + endless), class: "http_503"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := piped(c.serve)
				ctx, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(110*time.Millisecond, func() { stop(stopping) })
				start := time.Now()
				got := newSender().Send(ctx, &delivery.Job{Event: newEvent("POST", "http://a.example/", "x"), Number: 1,
					Endpoint: &delivery.Endpoint{Timeout: 15 * time.Second, RoundTripper: transport, BodyMatches: c.rule}})
				if got.Cut != c.cut || (!c.cut && got.Class != c.class) || got.Unsent {
					t.Errorf("%+v", got)
				}
				if took := time.Since(start); took != 110*time.Millisecond {
					t.Errorf("the stop took effect after %v", took)
				}
				transport.CloseIdleConnections()
				time.Sleep(time.Minute) // for the receiver to wake up and find nobody there
			})
		})
	}
}

// TestTimestampIsFresh: it is that of the attempt, not of the event.
func TestTimestampIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stamps []string
		e := &delivery.Endpoint{RoundTripper: tripper(func(r *http.Request) (*http.Response, error) {
			stamps = append(stamps, r.Header.Get("X-Delivery-Timestamp"))
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})}
		event := newEvent("POST", "http://a.example/", "x")
		send(t, e, event)
		time.Sleep(6 * time.Second)
		send(t, e, event)
		if len(stamps) != 2 || stamps[0] != "946684800" || stamps[1] != "946684806" {
			t.Errorf("%q", stamps)
		}
	})
}
