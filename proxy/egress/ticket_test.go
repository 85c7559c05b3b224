package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// ofOne may have one connection, and trusts everybody.
func ofOne(t *testing.T) *generation {
	d := &dialer{
		policy: Policy{AllowPrivate: true}, timeout: time.Minute,
		tls: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, // #nosec G402 -- the server is the test's
	}
	g := &generation{dialer: d, http1: newTransport(1)}
	g.http1.DialTLSContext = d.dialTLS
	g.http2 = newPool(1, g.http1)
	t.Cleanup(g.close)
	return g
}

// TestAnUnusedConnectionOfBefore: the TLS files change while a dial brings a connection, and the request that it was for is
// gone by then. Nothing else would ever be on the connection, and nothing else ends it.
func TestAnUnusedConnectionOfBefore(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	g := ofOne(t)
	ask := &ticket{pool: g.http2, host: addr}
	if _, err := g.dialer.dialTLS(&dialContext{Context: t.Context(), ticket: ask}, "tcp", addr); !errors.Is(err, errHTTP2) {
		t.Fatal(err)
	}
	c := ask.conn
	g.close()
	if c.cc.Err() != nil {
		t.Fatal("it is closed under the request that it was picked for")
	}
	ask.end()
	if c.cc.Err() == nil {
		t.Error("it stays open")
	}
}

// TestAnEndThatIsNotTold: net/http may not tell that a stream has ended. Whoever waits for it goes on all the same.
func TestAnEndThatIsNotTold(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(held)
			<-release
		}
	}))
	srv.EnableHTTP2, srv.Config.HTTP2 = true, &http.HTTP2Config{MaxConcurrentStreams: 1}
	srv.StartTLS()
	defer srv.Close()
	p := ofOne(t).http2
	get := func(path string) {
		ctx, cancel := context.WithTimeout(t.Context(), idleTimeout/2) // an idle connection's end would be told
		defer cancel()
		resp, err := p.roundTrip(httptest.NewRequestWithContext(ctx, "GET", srv.URL+path, http.NoBody))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		resp.Body.Close()
	}
	get("/first") // its answer would be told, too
	p.origins[srv.Listener.Addr().String()].conns[0].cc.SetStateHook(nil)
	var wg sync.WaitGroup
	wg.Go(func() { get("/held") })
	<-held
	wg.Go(func() { get("/waits") })
	for waits := false; !waits && !t.Failed(); time.Sleep(time.Millisecond) {
		p.changed.mu.Lock()
		waits = p.changed.c != nil
		p.changed.mu.Unlock()
	}
	close(release)
	wg.Wait()
}
