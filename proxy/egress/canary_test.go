package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"postern/proxy/egress"
	"postern/proxy/retry"
)

// The tests of this file have a canary: a listener on loopback that fails them when a connection is made to it.

// canaries listen at one port of every loopback address that a spelling may lead to.
func canaries(t *testing.T) (port string) {
	t.Helper()
	port = portOf(canary(t, "127.0.0.1:0"))
	for _, host := range []string{"127.0.0.2", "::1"} {
		canary(t, net.JoinHostPort(host, port))
	}
	return port
}

// locals are spellings of loopback addresses, and of what connects to the machine itself.
var locals = []string{
	"127.0.0.1", "127.0.0.2", "127.0.0.1.", "127.1", "127.0.1", "127.65535", "2130706433", "2130706433.", "017700000001", "0x7f000001", "0x7f.1", "0X7F.0.0.1",
	"0177.0.0.1", "0177.1", "00000177.0.0.01", "0", "0.0.0.0", "0x0", "00", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::1%25eth0]",
	"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]",
	"[2001:0:808:808::80ff:fffe]", "[fe80::1%25lo]", "localhost", "LOCALHOST", "localhost.", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021",
	"\u2460\u2461\u2466.0.0.1", "loc\u24d0lhost",
}

func TestNoSpellingReachesLoopback(t *testing.T) {
	port := canaries(t)
	dns := zone("sly.example", "127.0.0.1", "zero.example", "0.0.0.0", "six.example", "::1", "mapped.example", "::ffff:127.0.0.1",
		"nat64.example", "64:ff9b::7f00:1", "6to4.example", "2002:7f00:1::", "none6.example", "::", "xn--sly.example", "127.0.0.2")
	proxy := "http://" + net.JoinHostPort("127.0.0.1", port) // a canary too: what is refused must not get as far
	for _, options := range []egress.Options{{}, {HTTP2: true}, {Proxy: proxy}} {
		options.Resolver = dns.resolver()
		c := newClient(t, options)
		hosts := append([]string{"sly.example", "SLY.example.", "zero.example", "six.example", "mapped.example", "nat64.example", "6to4.example", "none6.example"}, locals...)
		for _, host := range hosts {
			for _, scheme := range []string{"http://", "https://"} {
				_, err := get(t, c, scheme+host+":"+port+"/")
				// A name that this resolver does not know, or a host that cannot be written, is as good.
				if !errors.Is(err, egress.ErrBlocked) && classOf(err) != retry.DNS && !(err != nil && strings.Contains(err.Error(), "invalid")) {
					t.Errorf("%s%s by %+v: %v, want ErrBlocked", scheme, host, options.Proxy, err)
				}
			}
		}
	}
}

// TestRebinding: a name that leads to an allowed address at one look-up and to another at the next reaches the allowed one
// or nothing, however the two alternate.
func TestRebinding(t *testing.T) {
	for _, order := range [][]string{{"127.0.0.3", "127.0.0.2"}, {"127.0.0.2", "127.0.0.3"}, {"127.0.0.3", "127.0.0.3", "127.0.0.2"}, {"127.0.0.3", "::1"}} {
		l, err := net.Listen("tcp", "127.0.0.3:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(ok)}}
		srv.Start()
		port := portOf(l.Addr().String())
		canary(t, "127.0.0.2:"+port)
		canary(t, "[::1]:"+port)
		dns := zone()
		dns.turn("turns.example", order...)
		c := newClient(t, egress.Options{Policy: allow("127.0.0.3"), Resolver: dns.resolver(), Concurrency: 1})
		reached := 0
		for range 30 {
			_, err := get(t, c, "http://turns.example:"+port+"/")
			switch {
			case err == nil:
				reached++
			case !errors.Is(err, egress.ErrBlocked) && classOf(err) != retry.Connect && classOf(err) != retry.DNS:
				t.Errorf("%v: %v", order, err)
			}
			c.Close() // the next one has to look it up again
		}
		if reached == 0 {
			t.Errorf("%v: never reached", order)
		}
		srv.Close()
	}
}

// TestKeptConnectionsAfterARebind: they go on leading where they were judged to lead, and a new one is judged anew.
func TestKeptConnectionsAfterARebind(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.3:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
		srv.Listener.Close()
		srv.Listener, srv.EnableHTTP2, srv.Config.ErrorLog = l, http2, quiet
		srv.StartTLS()
		port := portOf(l.Addr().String())
		canary(t, "127.0.0.2:"+port)
		dns := zone("example.com", "127.0.0.3")
		c := newClient(t, egress.Options{Policy: allow("127.0.0.3"), Resolver: dns.resolver(), Concurrency: 1, HTTP2: http2,
			TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}})
		url := "https://example.com:" + port + "/"
		if _, err := get(t, c, url); err != nil {
			t.Error(err)
		}
		dns.set("example.com", "127.0.0.2")
		if _, err := get(t, c, url); err != nil {
			t.Errorf("by the kept connection: %v", err)
		}
		srv.Close() // and its connections
		for range 3 {
			if _, err := getWithin(t, c, url, 2*time.Second); !errors.Is(err, egress.ErrBlocked) && classOf(err) != "none" {
				t.Errorf("by a new one: %v", err)
			}
		}
		if _, err := get(t, c, url); !errors.Is(err, egress.ErrBlocked) {
			t.Errorf("in the end: %v, want ErrBlocked", err)
		}
	}
}

// TestAnswersLeadNowhere: no header of an answer makes a connection.
func TestAnswersLeadNowhere(t *testing.T) {
	bait := canary(t, "127.0.0.2:0")
	for _, http2 := range []bool{false, true} {
		status := 200
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Alt-Svc", `h2="`+bait+`"; ma=86400, http/1.1="`+bait+`"; ma=86400, h3="`+bait+`"; ma=86400`)
			h.Set("Refresh", "0; url=http://"+bait+"/")
			h.Set("Link", "<http://"+bait+"/x>; rel=preload, <http://"+bait+">; rel=preconnect")
			h.Set("Location", "http://"+bait+"/")
			h.Set("Content-Location", "http://"+bait+"/")
			h.Set("Upgrade", "h2c")
			w.WriteHeader(status)
		}))
		srv.EnableHTTP2, srv.Config.ErrorLog = http2, quiet
		srv.StartTLS()
		c := newClient(t, egress.Options{Policy: private, HTTP2: http2, TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}})
		for _, status = range []int{200, 201, 301, 302, 303, 307, 308, 300, 421, 426, 503} {
			for range 2 {
				resp, err := get(t, c, srv.URL)
				if err != nil || resp.StatusCode != status {
					t.Errorf("%d: %v, %v", status, resp, err)
				}
			}
		}
		srv.Close()
	}
}

func TestEnvironmentProxiesAreIgnored(t *testing.T) {
	bait := canary(t, "127.0.0.1:0")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "SOCKS_PROXY"} {
		for _, name := range []string{name, strings.ToLower(name)} {
			t.Setenv(name, "http://"+bait)
		}
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "other.example")
	srv := httptest.NewServer(http.HandlerFunc(ok))
	defer srv.Close()
	secure, _ := counting(t, true, tellProto)
	dns := zone("example.com", "127.0.0.1")
	c := newClient(t, egress.Options{Policy: private, HTTP2: true, Resolver: dns.resolver(), TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", secure.Certificate().Raw)}})
	for _, url := range []string{"http://example.com:" + portOf(srv.Listener.Addr().String()) + "/", "https://example.com:" + portOf(secure.Listener.Addr().String()) + "/"} {
		if _, err := get(t, c, url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
