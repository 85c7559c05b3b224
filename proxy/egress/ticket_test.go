package egress

import (
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"testing"
	"time"
)

// TestAnUnusedConnectionOfBefore: the TLS files change while a dial brings a connection, and the request that it was for is
// gone by then. Nothing else would ever be on the connection, and nothing else ends it.
func TestAnUnusedConnectionOfBefore(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	d := &dialer{
		policy: Policy{AllowPrivate: true}, timeout: 5 * time.Second,
		tls: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, // #nosec G402 -- the server is the test's
	}
	g := &generation{dialer: d, http1: newTransport(1)}
	g.http2 = newPool(1, g.http1)
	ask := &ticket{pool: g.http2, host: addr}
	if _, err := d.dialTLS(&dialContext{Context: t.Context(), ticket: ask}, "tcp", addr); !errors.Is(err, errHTTP2) {
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
