package delivery_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"postern/proxy/delivery"
	"postern/proxy/egress"
	"postern/proxy/retry"
	"postern/spool"
)

// TestRequestInFrames: what leaves by HTTP/2 is what leaves by HTTP/1.1, in the other form, and nothing more.
func TestRequestInFrames(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		length             string // content-length; empty: none
	}{
		{"GET", "/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==", "", ""},
		{"GET", "/?foo=bar;moo&lit=%2520", "", ""},
		{"GET", "//x?", "", ""},
		{"POST", "/api/%2F/x//y/../z?u=1", "b", "1"},
		{"POST", "/", "", "0"},
		{"PUT", "/", "", "0"},
		{"DELETE", "/", "", ""},
		{"GET", "/", "abc", "3"},
		{"BREW", "/", strings.Repeat("\x00\xff", 50_000), "100000"},
	} {
		r := newH2(t, nil)
		event := newEvent(c.method, r.url(c.path), c.body, spool.Header{Name: "Idempotency-Key", Value: "k"},
			spool.Header{Name: "X-A", Value: "Zo\xeb"}, spool.Header{Name: "X-A", Value: ""}, spool.Header{Name: "Connection", Value: "close"})
		if got := send(t, r.endpoint(t, 2), event); got.Class != "" || got.Attempt.StatusCode != 204 {
			t.Fatalf("%s %s: %+v", c.method, c.path, got)
		}
		q := r.streams()[0]
		var got []string
		for _, f := range q.fields {
			if f.Name != "x-delivery-timestamp" {
				got = append(got, f.Name+": "+f.Value)
			}
		}
		want := []string{":authority: " + r.Addr().String(), ":method: " + c.method, ":path: " + c.path, ":scheme: https",
			"idempotency-key: k", "x-a: Zo\xeb", "x-a: ", "postern-event-id: evt_1", "postern-attempt: 1"}
		if c.length != "" {
			want = append(want, "content-length: "+c.length)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || string(q.body) != c.body || q.bare != (c.body == "") {
			t.Errorf("%s %s: %d bytes, END_STREAM with the headers: %v\ngot  %q\nwant %q", c.method, c.path, len(q.body), q.bare, got, want)
		}
	}
}

// ending is one way in which a stream, or its connection, ends without a whole answer.
type ending struct {
	name  string
	reply func(c *h2conn, q h2request)
	// What becomes of an attempt that is not the first one on its connection, and of one that is.
	class        retry.Class
	stale, fresh bool // Stale there and here
}

var endings = []ending{
	{"REFUSED_STREAM", func(c *h2conn, q h2request) { c.reset(q.stream, http2.ErrCodeRefusedStream) }, retry.Connection, true, true},
	{"GOAWAY before the stream", func(c *h2conn, q h2request) { c.goAway(max(q.stream, 2)-2, http2.ErrCodeNo) }, retry.Connection, true, true},
	{"GOAWAY that has the stream, and the end", func(c *h2conn, q h2request) { c.goAway(q.stream, http2.ErrCodeNo); c.Close() }, retry.Connection, true, false},
	{"GOAWAY for overload", func(c *h2conn, q h2request) { c.goAway(q.stream, http2.ErrCodeEnhanceYourCalm); c.Close() }, retry.Connection, false, false},
	{"PROTOCOL_ERROR", func(c *h2conn, q h2request) { c.reset(q.stream, http2.ErrCodeProtocol) }, retry.Connection, false, false},
	{"INTERNAL_ERROR", func(c *h2conn, q h2request) { c.reset(q.stream, http2.ErrCodeInternal) }, retry.Connection, false, false},
	{"CANCEL", func(c *h2conn, q h2request) { c.reset(q.stream, http2.ErrCodeCancel) }, retry.Connection, false, false},
	{"the connection breaks", func(c *h2conn, _ h2request) { c.Close() }, retry.Connection, true, false},
}

// TestNoSilentSecondSendByHTTP2: whatever a receiver does to a stream, every one that it sees is an attempt. net/http's own
// pool opens another stream by itself after most of these.
func TestNoSilentSecondSendByHTTP2(t *testing.T) {
	for _, end := range endings {
		for _, method := range []string{"GET", "POST"} {
			for _, body := range []string{"", "body"} {
				for _, fresh := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s/%s%s/fresh=%v", end.name, method, body, fresh), func(t *testing.T) {
						testEnding(t, end, newEvent(method, "", body, spool.Header{Name: "Idempotency-Key", Value: "k"}), fresh)
					})
				}
			}
		}
	}
}

func testEnding(t *testing.T, end ending, event *spool.Event, fresh bool) {
	var armed atomic.Bool
	r := newH2(t, func(r *h2recv) {
		r.reply = func(c *h2conn, q h2request) {
			if armed.CompareAndSwap(true, false) {
				end.reply(c, q)
				return
			}
			answer204(c, q)
		}
	})
	e := r.endpoint(t, 2)
	event.Target = r.url("/")
	attempts := 1
	if !fresh {
		attempts++
		if got := send(t, e, event); got.Class != "" {
			t.Fatalf("the first: %+v", got)
		}
	}
	armed.Store(true)
	got := send(t, e, event)
	want := end.stale
	if fresh {
		want = end.fresh
	}
	if got.Class != end.class || got.Stale != want || got.Unsent || got.Sampled || got.Cut {
		t.Errorf("stale %v is wanted: %+v", want, got)
	}
	if n := len(r.streams()); n != attempts {
		t.Errorf("%d attempts opened %d streams", attempts, n)
	}
	if got := send(t, e, event); got.Class != "" {
		t.Errorf("the next one: %+v", got)
	}
	if n := len(r.streams()); n != attempts+1 {
		t.Errorf("%d attempts opened %d streams", attempts+1, n)
	}
}

// TestGoAwayWhileIdle: the next request takes another connection, in one attempt and with one stream.
func TestGoAwayWhileIdle(t *testing.T) {
	for _, body := range []string{"", "body"} {
		for _, closes := range []bool{true, false} {
			r := newH2(t, nil)
			e := r.endpoint(t, 2)
			for n := range 20 {
				event := newEvent("POST", r.url("/"), body)
				got := send(t, e, event)
				// The GOAWAY may be read after a stream was opened: then that attempt has failed, and is no fault.
				if got.Class != "" && (got.Class != retry.Connection || !got.Stale) {
					t.Fatalf("attempt %d: %+v", n, got)
				}
				if seen := len(r.streams()); seen > n+1 {
					t.Fatalf("%d attempts opened %d streams", n+1, seen)
				}
				r.mu.Lock()
				c := r.conns[len(r.conns)-1]
				r.mu.Unlock()
				c.goAway(1<<31-1, http2.ErrCodeNo)
				if closes {
					c.Close()
				}
			}
		}
	}
}

// TestGoAwayAtOnce: a server that takes connections and sends every one away is no reason to dial without end.
func TestGoAwayAtOnce(t *testing.T) {
	r := newH2(t, func(r *h2recv) { r.greet = func(c *h2conn) { c.goAway(0, http2.ErrCodeNo); c.Close() } })
	e := r.endpoint(t, 4)
	for range 5 {
		if got := send(t, e, newEvent("POST", r.url("/"), "x")); got.Class != retry.Connection {
			t.Errorf("%+v", got)
		}
	}
	if n := r.connections(); n > 5*4 {
		t.Errorf("5 attempts made %d connections", n)
	}
}

// TestGoAwayInTheMiddle: streams up to the last one that it names go on, and later ones are not processed.
func TestGoAwayInTheMiddle(t *testing.T) {
	const streams = 8
	var mu sync.Mutex
	var held []h2request
	r := newH2(t, func(r *h2recv) {
		r.reply = func(c *h2conn, q h2request) {
			if q.nth == 1 || q.conn > 1 { // the first one proves the connection
				answer204(c, q)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if held = append(held, q); len(held) == streams {
				slices.SortFunc(held, func(a, b h2request) int { return int(a.stream) - int(b.stream) }) // they end in any order
				last := held[streams/2-1].stream
				c.goAway(last, http2.ErrCodeNo)
				for _, h := range held[:streams/2] {
					answer204(c, h)
				}
			}
		}
	})
	e := r.endpoint(t, streams)
	send(t, e, newEvent("POST", r.url("/"), "x"))
	results := sendAtOnce(t, e, r.url("/"), streams)
	delivered, unprocessed := 0, 0
	for _, got := range results {
		switch {
		case got.Class == "":
			delivered++
		case got.Class == retry.Connection && got.Stale:
			unprocessed++
		default:
			t.Errorf("%+v", got)
		}
	}
	if delivered != streams/2 || unprocessed != streams/2 || len(r.streams()) != streams+1 {
		t.Errorf("%d delivered, %d not processed, %d streams for %d attempts", delivered, unprocessed, len(r.streams()), streams+1)
	}
}

// sendAtOnce makes n attempts at once.
func sendAtOnce(t *testing.T, e *delivery.Endpoint, url string, n int) []delivery.Result {
	results := make([]delivery.Result, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = send(t, e, newEvent("POST", url, "x")) })
	}
	wg.Wait()
	return results
}

// TestOneConnection: a burst shares one. Where connecting takes so long that the others no longer wait for it, as it may on a
// busy machine, they connect as well: one of five bursts must find it in time.
func TestOneConnection(t *testing.T) {
	var connections []int
	for range 5 {
		r := newH2(t, nil)
		for _, got := range sendAtOnce(t, r.endpoint(t, 32), r.url("/"), 200) {
			if got.Class != "" {
				t.Fatalf("%+v", got)
			}
		}
		if n := len(r.streams()); n != 200 {
			t.Errorf("%d streams", n)
		}
		if connections = append(connections, r.connections()); r.connections() == 1 {
			return
		}
	}
	t.Errorf("%v connections", connections)
}

// TestMaxConcurrentStreams: a receiver that allows one stream at a time gets no second one, also not before its SETTINGS
// could be read, and the endpoint's concurrency comes from several connections.
func TestMaxConcurrentStreams(t *testing.T) {
	const concurrency = 4
	var open, most atomic.Int64
	var perConn sync.Map
	r := newH2(t, func(r *h2recv) {
		r.settings = []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1}}
		r.headers = func(c *h2conn, stream uint32) {
			count, _ := perConn.LoadOrStore(c.number, new(atomic.Int64))
			if count.(*atomic.Int64).Add(1) > 1 {
				c.reset(stream, http2.ErrCodeRefusedStream)
			}
		}
		r.reply = func(c *h2conn, q h2request) {
			for now := open.Add(1); ; {
				if old := most.Load(); now <= old || most.CompareAndSwap(old, now) {
					break
				}
			}
			go func() {
				time.Sleep(2 * time.Millisecond) // so that they overlap
				open.Add(-1)
				count, _ := perConn.Load(c.number)
				count.(*atomic.Int64).Add(-1)
				answer204(c, q)
			}()
		}
	})
	for _, got := range sendAtOnce(t, r.endpoint(t, concurrency), r.url("/"), 60) {
		if got.Class != "" {
			t.Errorf("%+v", got)
		}
	}
	if n := r.connections(); n > concurrency || n < 2 {
		t.Errorf("%d connections for a concurrency of %d", n, concurrency)
	}
	if most.Load() < 2 || len(r.streams()) != 60 {
		t.Errorf("%d at once, %d streams", most.Load(), len(r.streams()))
	}
}

// TestLimitBelowWhatIsUnderWay: a limit of streams that comes when there are more already delays the rest, and stops nothing.
func TestLimitBelowWhatIsUnderWay(t *testing.T) {
	const streams = 20
	limited := make(chan struct{})
	var opened atomic.Int64
	r := newH2(t, func(r *h2recv) {
		r.late = true
		r.headers = func(c *h2conn, _ uint32) {
			if opened.Add(1) == 5 {
				c.do(func(f *http2.Framer) {
					_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
				})
				close(limited)
			}
		}
		r.reply = func(c *h2conn, q h2request) {
			go func() {
				<-limited
				answer204(c, q)
			}()
		}
	})
	for _, got := range sendAtOnce(t, r.endpoint(t, 1), r.url("/"), streams) {
		if got.Class != "" {
			t.Errorf("%+v", got)
		}
	}
	if len(r.streams()) != streams || r.connections() != 1 {
		t.Errorf("%d streams on %d connections", len(r.streams()), r.connections())
	}
}

// patientBut is the timeout of an attempt: a long one, so that no busy machine reaches it, but for one that is to time out.
func patientBut(want retry.Class, short time.Duration) time.Duration {
	if want == retry.Timeout {
		return short
	}
	return time.Minute
}

// TestVanishedReceiver: an attempt that hears nothing takes its connection with it, so that the next one gets another.
func TestVanishedReceiver(t *testing.T) {
	r := newH2(t, func(r *h2recv) {
		r.headers = func(c *h2conn, stream uint32) {
			if c.number == 1 && stream > 1 {
				c.hush()
			}
		}
	})
	e := r.endpoint(t, 4)
	for n, want := range []retry.Class{"", retry.Timeout, "", ""} {
		e.Timeout = patientBut(want, time.Second)
		if got := send(t, e, newEvent("POST", r.url("/"), "x")); got.Class != want || got.Unsent || got.Stale {
			t.Errorf("attempt %d: %+v, want %q", n+1, got, want)
		}
	}
	if r.connections() != 2 || len(r.streams()) != 4 {
		t.Errorf("%d connections, %d streams", r.connections(), len(r.streams()))
	}
}

// TestSlowReceiverKeepsItsConnection: one stream that gets no answer does not take the others' connection.
func TestSlowReceiverKeepsItsConnection(t *testing.T) {
	r := newH2(t, func(r *h2recv) {
		r.reply = func(c *h2conn, q h2request) {
			if q.nth == 2 {
				c.do(func(f *http2.Framer) { _ = f.WritePing(false, [8]byte{1}) }) // alive
				return
			}
			answer204(c, q)
		}
	})
	e := r.endpoint(t, 4)
	for n, want := range []retry.Class{"", retry.Timeout, ""} {
		e.Timeout = patientBut(want, 500*time.Millisecond)
		if got := send(t, e, newEvent("POST", r.url("/"), "x")); got.Class != want {
			t.Errorf("attempt %d: %+v, want %q", n+1, got, want)
		}
	}
	if r.connections() != 1 {
		t.Errorf("%d connections", r.connections())
	}
}

// TestBrokenAnswersByHTTP2: a success counts with its headers, whatever becomes of the body; a rule needs the body.
func TestBrokenAnswersByHTTP2(t *testing.T) {
	r := newH2(t, func(r *h2recv) {
		r.reply = func(c *h2conn, q h2request) {
			c.start(q.stream, 200, false)
			c.do(func(f *http2.Framer) { _ = f.WriteData(q.stream, false, []byte("half")) })
			c.reset(q.stream, http2.ErrCodeInternal)
		}
	})
	e := r.endpoint(t, 4)
	if got := send(t, e, newEvent("POST", r.url("/"), "x")); got.Class != "" || got.Attempt.StatusCode != 200 {
		t.Errorf("%+v", got)
	}
	e.BodyMatches = anything
	if got := send(t, e, newEvent("POST", r.url("/"), "x")); got.Class != retry.Connection || got.Attempt.StatusCode != 200 || got.Stale {
		t.Errorf("%+v", got)
	}
	if len(r.streams()) != 2 || r.connections() != 1 {
		t.Errorf("%d streams, %d connections", len(r.streams()), r.connections())
	}
}

// TestOnWroteByHTTP2: told once, after the request left and before its answer is needed.
func TestOnWroteByHTTP2(t *testing.T) {
	for _, size := range []int{0, 1, 100_000} {
		told, passed := make(chan time.Time, 2), make(chan bool, 1)
		r := newH2(t, func(r *h2recv) {
			r.reply = func(c *h2conn, q h2request) {
				select {
				case <-told:
					passed <- true
				case <-time.After(time.Minute):
					passed <- false
				}
				answer204(c, q)
			}
		})
		got := newSender().Send(t.Context(), &delivery.Job{Event: newEvent("POST", r.url("/"), strings.Repeat("x", size)), Number: 1,
			Endpoint: r.endpoint(t, 1), OnWrote: func(at time.Time) { told <- at }})
		if got.Class != "" || !<-passed || len(told) != 0 {
			t.Errorf("size %d: %+v, told %d times more", size, got, len(told))
		}
	}
}

// TestHTTP2SwitchedOff: nothing but HTTP/1.1 is offered then.
func TestHTTP2SwitchedOff(t *testing.T) {
	r := newH2(t, nil)
	c, err := egress.New(egress.Options{Policy: egress.Policy{AllowPrivate: true}, TLS: egress.TLS{CAFile: r.ca}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := &delivery.Endpoint{Timeout: time.Minute, RoundTripper: c}
	if got := send(t, e, newEvent("POST", r.url("/"), "x")); got.Class != retry.Connection || len(r.streams()) != 0 {
		t.Errorf("%+v", got)
	}
}
