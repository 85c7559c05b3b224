package egress_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/proxy/egress"
	"postern/proxy/retry"
)

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func classOf(err error) retry.Class {
	if known, ok := errors.AsType[interface {
		error
		RetryClass() retry.Class
	}](err); ok {
		return known.RetryClass()
	}
	return "none"
}

func TestEveryDialledAddressIsJudged(t *testing.T) {
	bad := canary(t, "127.0.0.2:0")
	l, err := net.Listen("tcp", "127.0.0.1:"+portOf(bad))
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(ok)}}
	srv.Start()
	defer srv.Close()
	dns := zone("both.example", "127.0.0.2", "both.example", "127.0.0.1", "bad.example", "127.0.0.2", "turns.example", "127.0.0.1")
	c := newClient(t, egress.Options{Policy: allow("127.0.0.1"), Resolver: dns.resolver(), Concurrency: 1})
	base := ":" + portOf(bad) + "/"

	if _, err := get(t, c, "http://both.example"+base); err != nil {
		t.Errorf("one of two addresses is allowed: %v", err)
	}
	if _, err := get(t, c, "http://bad.example"+base); !errors.Is(err, egress.ErrBlocked) {
		t.Errorf("%v, want ErrBlocked", err)
	}
	if _, err := get(t, c, "http://turns.example"+base); err != nil {
		t.Error(err)
	}
	c.Close() // the next request has to dial
	dns.set("turns.example", "127.0.0.2")
	if _, err := get(t, c, "http://turns.example"+base); !errors.Is(err, egress.ErrBlocked) {
		t.Errorf("after its address turned: %v, want ErrBlocked", err)
	}
}

func TestAllowedHostMayBeLocal(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(ok))
	defer srv.Close()
	dns := zone("in.partner.example", "127.0.0.1", "other.example", "127.0.0.1")
	c := newClient(t, egress.Options{Policy: allow("*.partner.example"), Resolver: dns.resolver()})
	port := portOf(srv.Listener.Addr().String())
	if _, err := get(t, c, "http://in.partner.example:"+port+"/"); err != nil {
		t.Error(err)
	}
	if _, err := get(t, c, "http://other.example:"+port+"/"); !errors.Is(err, egress.ErrBlocked) {
		t.Errorf("%v, want ErrBlocked", err)
	}
}

func TestPhases(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	mute := muteListener(t)
	plain := httptest.NewServer(http.HandlerFunc(ok))
	defer plain.Close()
	secure := quietTLS(t)
	mixed := zone("mixed.example", "169.254.1.1", "mixed.example", "127.0.0.1")
	c := newClient(t, egress.Options{Policy: private, Resolver: mixed.resolver(), Concurrency: 2})
	for _, x := range []struct {
		name, url string
		want      retry.Class
	}{
		{"no such name", "http://nowhere.example/", retry.DNS},
		{"closed port", "http://" + closed.Addr().String() + "/", retry.Connect},
		{"closed port, TLS", "https://" + closed.Addr().String() + "/", retry.Connect},
		{"one address blocked, the other closed", "http://mixed.example:" + portOf(closed.Addr().String()) + "/", retry.Connect},
		{"untrusted certificate", secure.URL, retry.TLS},
		{"no TLS there", "https://" + plain.Listener.Addr().String() + "/", retry.TLS},
	} {
		_, err := get(t, c, x.url)
		if got := classOf(err); got != x.want {
			t.Errorf("%s: %v (%s), want %s", x.name, err, got, x.want)
		}
	}
	_, err = getWithin(t, c, "https://"+mute+"/", 30*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a handshake without an answer: %v", err)
	}
}

// muteListener accepts and says nothing.
func muteListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// TestAnAbandonedDialEnds: with one socket only, a dial that outlived its request would block the next one.
func TestAnAbandonedDialEnds(t *testing.T) {
	mute := muteListener(t)
	c := newClient(t, egress.Options{Policy: private, Concurrency: 1, Timeout: time.Hour})
	for range 3 {
		start := time.Now()
		_, err := getWithin(t, c, "https://"+mute+"/", 40*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) && classOf(err) != retry.Timeout {
			t.Fatalf("%v, want a timeout", err)
		}
		if time.Since(start) > time.Minute {
			t.Fatal("the request waited for an abandoned dial")
		}
	}
}

func TestTLSFiles(t *testing.T) {
	cert, certFile, keyFile := clientCert(t)
	var sni atomic.Value
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != r.TLS.ServerName+":"+portOf(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()) {
			w.WriteHeader(http.StatusMisdirectedRequest)
		}
	}))
	srv.Config.ErrorLog = quiet
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		sni.Store(h.ServerName)
		return nil, nil
	}}
	srv.StartTLS()
	defer srv.Close()
	ca := pemFile(t, "CERTIFICATE", srv.Certificate().Raw)
	url := "https://example.com:" + portOf(srv.Listener.Addr().String()) + "/"
	resolver := zone("example.com", "127.0.0.1", "other.example", "127.0.0.1").resolver()

	c := newClient(t, egress.Options{Policy: private, Resolver: resolver, TLS: egress.TLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}})
	resp, err := get(t, c, url)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("with CA and client certificate: %v, %v", resp, err)
	}
	if sni.Load() != "example.com" {
		t.Errorf("SNI %q", sni.Load())
	}
	if _, err := get(t, c, "https://other.example:"+portOf(srv.Listener.Addr().String())+"/"); classOf(err) != retry.TLS {
		t.Errorf("a certificate for another name: %v", err)
	}
	c = newClient(t, egress.Options{Policy: private, Resolver: resolver, TLS: egress.TLS{CAFile: ca}})
	if _, err := get(t, c, url); err == nil {
		t.Error("accepted without a client certificate")
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	srv.Config.ErrorLog = quiet
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	srv.StartTLS()
	defer srv.Close()
	c := newClient(t, egress.Options{Policy: private, TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}})
	if _, err := get(t, c, srv.URL); classOf(err) != retry.TLS {
		t.Errorf("TLS 1.1: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	_, certFile, keyFile := clientCert(t)
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for name, c := range map[string]struct {
		options egress.Options
		want    error
	}{
		"no certificate in the CA file": {egress.Options{TLS: egress.TLS{CAFile: keyFile}}, egress.ErrCA},
		"certificate without key":       {egress.Options{TLS: egress.TLS{CertFile: certFile}}, egress.ErrKeyPair},
		"key without certificate":       {egress.Options{TLS: egress.TLS{KeyFile: keyFile}}, egress.ErrKeyPair},
		"missing CA file":               {egress.Options{TLS: egress.TLS{CAFile: missing}}, nil},
		"missing key file":              {egress.Options{TLS: egress.TLS{CertFile: certFile, KeyFile: missing}}, nil},
		"proxy without scheme":          {egress.Options{Proxy: "proxy.example:3128"}, egress.ErrProxy},
		"socks proxy":                   {egress.Options{Proxy: "socks5://proxy.example"}, egress.ErrProxy},
		"proxy without host":            {egress.Options{Proxy: "http://"}, egress.ErrProxy},
		"unreadable proxy":              {egress.Options{Proxy: "http://u:PW%zz@p\x00"}, egress.ErrProxy},
	} {
		made, err := egress.New(c.options)
		if err == nil || made != nil || (c.want != nil && !errors.Is(err, c.want)) {
			t.Errorf("%s: %v, %v", name, made, err)
		}
	}
}

// TestSockets: never more sockets than the concurrency, whatever is asked for at once.
func TestSockets(t *testing.T) {
	const concurrency = 3
	var open, most, total atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			total.Add(1)
			for now := open.Add(1); ; {
				if old := most.Load(); now <= old || most.CompareAndSwap(old, now) {
					break
				}
			}
		case http.StateClosed:
			open.Add(-1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := newClient(t, egress.Options{Policy: private, Concurrency: concurrency})
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			if _, err := get(t, c, srv.URL); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > concurrency || total.Load() > concurrency {
		t.Errorf("%d sockets at once and %d in all, for a concurrency of %d", most.Load(), total.Load(), concurrency)
	}
}

func TestErrorsTellNoSecrets(t *testing.T) {
	err := error(&egress.PhaseError{Phase: retry.TLS, Err: errors.New("https://u:PW1@h/?token=SEC1")})
	if got := err.Error(); got != "no connection: tls" {
		t.Errorf("%q", got)
	}
	if _, err := egress.New(egress.Options{Proxy: "ftp://u:PW1@proxy"}); err == nil || err.Error() != egress.ErrProxy.Error() {
		t.Errorf("%v", err)
	}
}
