package egress_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"postern/proxy/egress"
	"postern/proxy/retry"
)

// counting is a TLS server that counts its connections.
func counting(t *testing.T, http2 bool, handler http.HandlerFunc) (srv *httptest.Server, conns *atomic.Int64) {
	t.Helper()
	conns = new(atomic.Int64)
	srv = httptest.NewUnstartedServer(handler)
	srv.EnableHTTP2 = http2
	srv.Config.ErrorLog = quiet
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, conns
}

func tellProto(w http.ResponseWriter, r *http.Request) { w.Header().Set("Proto", r.Proto) }

// TestProtocol: HTTP/2 where both sides want it, one connection for a burst; else HTTP/1.1 in as many as before. A burst does
// not wait for a connection that is long in coming, as it may be on a busy machine: one of five must find it in time.
func TestProtocol(t *testing.T) {
	const concurrency = 4
	for _, x := range []struct {
		name           string
		offered, there bool
		want           string
		most           int64
	}{
		{"both", true, true, "HTTP/2.0", 1}, {"not offered", false, true, "HTTP/1.1", concurrency}, {"not spoken", true, false, "HTTP/1.1", concurrency},
	} {
		for _, proxied := range []bool{false, true} {
			burst := func() int64 {
				// A receiver for each: a dial that nobody waited for any more may reach it when its client is done.
				srv, conns := counting(t, x.there, tellProto)
				options := egress.Options{Policy: private, Concurrency: concurrency, HTTP2: x.offered,
					TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}}
				if proxied {
					options.Proxy = newForward(t, false, srv.Listener.Addr().String()).URL
				}
				sendBurst(t, options, srv.URL, x.want)
				return conns.Load()
			}
			n := burst()
			for tries := 1; tries < 5 && n > x.most && n <= concurrency; tries++ {
				n = burst()
			}
			if n > x.most {
				t.Errorf("%s, proxied %v: %d connections", x.name, proxied, n)
			}
		}
	}
}

// sendBurst makes 40 requests at once, all of which must go by this protocol.
func sendBurst(t *testing.T, options egress.Options, url, proto string) {
	t.Helper()
	c := newClient(t, options)
	defer c.Close()
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			resp, err := get(t, c, url)
			if err != nil || resp.Header.Get("Proto") != proto {
				t.Errorf("HTTP/2 offered %v, proxied %v: %v, %v, want %s", options.HTTP2, options.Proxy != "", resp, err, proto)
			}
		})
	}
	wg.Wait()
}

// TestProtocolChanges: a receiver that learns or forgets HTTP/2 is spoken to as it wants with the next connection.
func TestProtocolChanges(t *testing.T) {
	one, _ := counting(t, false, tellProto)
	two, _ := counting(t, true, tellProto)
	f := newForward(t, false, "")
	c := newClient(t, egress.Options{Policy: private, HTTP2: true, Proxy: f.URL,
		TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", one.Certificate().Raw)}})
	for _, x := range []struct {
		srv  *httptest.Server
		want string
	}{{one, "HTTP/1.1"}, {two, "HTTP/2.0"}, {one, "HTTP/1.1"}, {two, "HTTP/2.0"}} {
		f.redirect(x.srv.Listener.Addr().String())
		c.Close()
		for range 3 {
			if resp, err := get(t, c, "https://127.0.0.1:1/"); err != nil || resp.Header.Get("Proto") != x.want {
				t.Errorf("%v, %v, want %s", resp, err, x.want)
			}
		}
	}
}

// TestAHangingFirstDial: others do not wait for it for long.
func TestAHangingFirstDial(t *testing.T) {
	srv, _ := counting(t, true, tellProto)
	f := newForward(t, false, muteListener(t))
	c := newClient(t, egress.Options{Policy: private, Concurrency: 2, HTTP2: true, Proxy: f.URL,
		TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := c.RoundTrip(req); err == nil {
			resp.Body.Close()
			t.Error("answered")
		}
	})
	<-f.arrived // the first dial has reached the proxy
	f.redirect(srv.Listener.Addr().String())
	if _, err := get(t, c, srv.URL); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
}

// TestRefusedDialsByHTTP2: each request meets the same end as by HTTP/1.1.
func TestRefusedDialsByHTTP2(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	c := newClient(t, egress.Options{Policy: private, Concurrency: 8, HTTP2: true})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if _, err := get(t, c, "https://"+closed.Addr().String()+"/"); classOf(err) != retry.Connect {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	srv := quietTLS(t)
	if _, err := get(t, c, srv.URL); classOf(err) != retry.TLS {
		t.Errorf("untrusted: %v", err)
	}
}
