package egress_test

import (
	"bufio"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"postern/proxy/egress"
	"postern/proxy/retry"
	"postern/proxy/target"
)

// forward is a proxy that keeps what it is asked for, answers plain requests itself, and tunnels to where it is told.
type forward struct {
	*httptest.Server
	tunnelTo string
	status   int // of CONNECT, and of a plain request
	arrived  chan struct{}

	mu    sync.Mutex // guards asked, and tunnelTo once it is in use
	asked []string   // request line's target, and Proxy-Authorization
}

func newForward(t *testing.T, secure bool, tunnelTo string) *forward {
	t.Helper()
	f := &forward{tunnelTo: tunnelTo, status: 200, arrived: make(chan struct{}, 1)}
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = quiet
	if secure {
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	return f
}

func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	to := f.tunnelTo
	f.mu.Unlock()
	select {
	case f.arrived <- struct{}{}:
	default:
	}
	if r.Method != http.MethodConnect {
		w.WriteHeader(f.status)
		return
	}
	if f.status != 200 {
		w.WriteHeader(f.status)
		return
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	down, _, _ := w.(http.Hijacker).Hijack()
	_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(up, down); up.Close() }()
	_, _ = io.Copy(down, bufio.NewReader(up))
	down.Close()
}

// redirect has later tunnels end elsewhere.
func (f *forward) redirect(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tunnelTo = to
}

func (f *forward) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

// through sends a GET for a target exactly as delivery would.
func through(t *testing.T, c http.RoundTripper, raw string) (*http.Response, error) {
	t.Helper()
	parsed, err := target.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u, err := parsed.URL()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip((&http.Request{Method: "GET", URL: &u, Host: parsed.Host, Header: http.Header{}}).WithContext(t.Context()))
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return resp, err
}

func TestProxyPlain(t *testing.T) {
	f := newForward(t, false, "")
	dns := zone("pub.example", "8.8.8.8", "priv.example", "10.0.0.1", "mixed.example", "8.8.8.8", "mixed.example", "127.0.0.1",
		"127.0.0.1", "127.0.0.1")
	c := newClient(t, egress.Options{Proxy: "http://us%40er:pw@" + f.Listener.Addr().String(), Resolver: dns.resolver()})
	auth := " Basic " + base64.StdEncoding.EncodeToString([]byte("us@er:pw"))
	for _, raw := range []string{
		"http://pub.example/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==&foo=bar;moo", "http://pub.example:81/api/%2F/x//y/../z?",
		"http://pub.example//two/slashes?x", "http://8.8.8.8/",
	} {
		if _, err := through(t, c, raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if asked := f.take(); len(asked) != 1 || asked[0] != "GET "+raw+auth {
			t.Errorf("the proxy was asked %q, want %q", asked, "GET "+raw+auth)
		}
	}
	for raw, want := range map[string]retry.Class{
		"http://priv.example/": retry.BlockedAddress, "http://mixed.example/": retry.BlockedAddress, "http://127.1/": retry.BlockedAddress,
		"http://localhost/": retry.BlockedAddress, "https://priv.example/": retry.BlockedAddress, "http://unknown.example/": retry.DNS,
	} {
		if _, err := through(t, c, raw); classOf(err) != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if asked := f.take(); asked != nil {
		t.Errorf("the proxy was asked for what is refused: %q", asked)
	}
}

// A proxy that wants other credentials has passed nothing on, with or without a tunnel: no connection, and not an answer of
// the receiver's that would make a dead letter at once. Other answers to a plain request may be the receiver's own.
func TestProxyWantsCredentials(t *testing.T) {
	f := newForward(t, false, "")
	c := newClient(t, egress.Options{Proxy: f.URL, Resolver: zone("pub.example", "8.8.8.8").resolver()})
	f.status = http.StatusProxyAuthRequired
	for _, raw := range []string{"http://pub.example/", "https://pub.example/"} {
		if _, err := through(t, c, raw); classOf(err) != retry.Connect {
			t.Errorf("%s: %v, want connect", raw, err)
		}
	}
	f.status = http.StatusForbidden
	if resp, err := through(t, c, "http://pub.example/"); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("an answer that may be the receiver's: %v", err)
	}
}

func TestProxyKnowsTrustedNamesBetter(t *testing.T) {
	f := newForward(t, false, "")
	dns := zone("meta.partner.example", "169.254.169.254")
	c := newClient(t, egress.Options{Proxy: f.URL, Policy: allow("*.partner.example"), Resolver: dns.resolver()})
	if _, err := through(t, c, "http://only-there.partner.example/"); err != nil {
		t.Errorf("a trusted name that only the proxy knows: %v", err)
	}
	if _, err := through(t, c, "http://meta.partner.example/"); !errors.Is(err, egress.ErrBlocked) {
		t.Errorf("a trusted name that leads to the metadata service: %v", err)
	}
}

func TestProxyTunnel(t *testing.T) {
	for _, secure := range []bool{false, true} {
		srv := quietTLS(t)
		f := newForward(t, secure, srv.Listener.Addr().String())
		dns := zone("example.com", "8.8.8.8")
		ca := pemFile(t, "CERTIFICATE", srv.Certificate().Raw)
		c := newClient(t, egress.Options{Proxy: f.URL, Resolver: dns.resolver(), TLS: egress.TLS{CAFile: ca}})
		_, err := through(t, c, "https://example.com/x?y")
		if secure {
			// The proxy's certificate is judged by the system's roots, not by the endpoint's CA, although it would pass there.
			if classOf(err) != retry.TLS {
				t.Errorf("a proxy that is not trusted: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("tunnel: %v", err)
		}
		if asked := f.take(); len(asked) != 1 || asked[0] != "CONNECT example.com:443 " {
			t.Errorf("asked %q", asked)
		}
		c.Close()
		f.status = http.StatusForbidden
		if _, err := through(t, c, "https://example.com/x?y"); err == nil {
			t.Error("no error when the proxy refuses the tunnel")
		}
	}
}
