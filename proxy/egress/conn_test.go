package egress_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"postern/proxy/egress"
)

// metered is what delivery looks for in a connection.
type metered interface {
	net.Conn
	Written() int64
	OnWrite(f func())
}

// send makes a POST and returns the connection it went through, with its reading before.
func send(t *testing.T, c *egress.Client, url, body string, onWrite func()) (m metered, before int64) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		var ok bool
		if m, ok = info.Conn.(metered); !ok {
			if tunnel, isTLS := info.Conn.(*tls.Conn); isTLS {
				m, ok = tunnel.NetConn().(metered)
			}
		}
		if !ok {
			t.Fatalf("a %T does not count", info.Conn)
		}
		before = m.Written()
		m.OnWrite(onWrite)
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return m, before
}

func TestConnectionsCountPlaintext(t *testing.T) {
	body := strings.Repeat("x", 10_000)
	plain := httptest.NewServer(http.HandlerFunc(ok))
	defer plain.Close()
	secure := quietTLS(t)
	files := egress.TLS{CAFile: pemFile(t, "CERTIFICATE", secure.Certificate().Raw)}
	c := newClient(t, egress.Options{Policy: private, Concurrency: 1, TLS: files})
	sizes := map[string]int64{}
	for _, srv := range []*httptest.Server{plain, secure} {
		var writes atomic.Int64
		m, before := send(t, c, srv.URL, body, func() { writes.Add(1) })
		if before != 0 {
			t.Errorf("%s: a fresh connection has %d bytes written", srv.URL, before)
		}
		first := m.Written()
		if first < 10_000 || writes.Load() == 0 {
			t.Errorf("%s: %d bytes in %d writes", srv.URL, first, writes.Load())
		}
		sizes[srv.URL[:5]] = first
		hooked := writes.Load()
		again, before := send(t, c, srv.URL, body, nil)
		if again != m || before != first || again.Written() != 2*first {
			t.Errorf("%s: second request: %d before, %d after, want %d and %d", srv.URL, before, again.Written(), first, 2*first)
		}
		if writes.Load() != hooked {
			t.Error("the first request's hook still runs")
		}
	}
	// The same request is as long with TLS as without: handshake, records and alerts are not counted.
	if sizes["https"] != sizes["http:"] {
		t.Errorf("counted %v", sizes)
	}
}

func TestTunnelsCountToo(t *testing.T) {
	srv := quietTLS(t)
	f := newForward(t, false, srv.Listener.Addr().String())
	c := newClient(t, egress.Options{Policy: private, Proxy: f.URL, Resolver: zone("example.com", "8.8.8.8").resolver(),
		TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}})
	m, before := send(t, c, "https://example.com/", "body", nil)
	if m.Written() <= before {
		t.Error("nothing was counted")
	}
}
