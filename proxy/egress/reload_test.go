package egress_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"postern/proxy/egress"
	"postern/proxy/retry"
)

// pair is a certificate and its key as PEM.
type pair struct{ cert, key []byte }

// selfSigned makes a certificate that is its own authority, for client and server.
func selfSigned(t *testing.T, name string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
}

// mount writes files as a Kubernetes secret is mounted: a directory of its own, reached by the link ..data, which is
// replaced at once; the files are links through it.
func mount(t *testing.T, dir, version string, files map[string][]byte) {
	t.Helper()
	real := filepath.Join(dir, ".."+version)
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(real, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(".."+version, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// rotating is a receiver that tells who its client is, and an endpoint whose files can be replaced.
type rotating struct {
	dir, url string
	client   *egress.Client
	log      *lockedBuffer
}

func newRotating(t *testing.T, http2 bool) *rotating {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Client", r.TLS.PeerCertificates[0].Subject.CommonName)
		w.Header().Set("Proto", r.Proto)
	}))
	srv.EnableHTTP2 = http2
	srv.Config.ErrorLog = quiet
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	r := &rotating{dir: t.TempDir(), url: srv.URL, log: new(lockedBuffer)}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	first := selfSigned(t, "first")
	mount(t, r.dir, "1", map[string][]byte{"ca.pem": ca, "tls.crt": first.cert, "tls.key": first.key})
	r.client = newClient(t, egress.Options{Policy: private, HTTP2: http2, Log: slog.New(slog.NewTextHandler(r.log, nil)), TLS: egress.TLS{
		CAFile: filepath.Join(r.dir, "ca.pem"), CertFile: filepath.Join(r.dir, "tls.crt"), KeyFile: filepath.Join(r.dir, "tls.key"),
	}}.LookAlways())
	return r
}

// is asks the receiver who we are.
func (r *rotating) is(t *testing.T, want string) {
	t.Helper()
	resp, err := get(t, r.client, r.url)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Client"); got != want {
		t.Errorf("the receiver sees %q, want %q", got, want)
	}
}

// TestCertificatesAreReread: a secret that is swapped takes effect, also for connections that are open and in use, without
// anybody asking for it.
func TestCertificatesAreReread(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		r := newRotating(t, http2)
		r.is(t, "first")
		r.is(t, "first")
		ca, err := os.ReadFile(filepath.Join(r.dir, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		second := selfSigned(t, "second")
		mount(t, r.dir, "2", map[string][]byte{"ca.pem": ca, "tls.crt": second.cert, "tls.key": second.key})
		r.is(t, "second")
		if got := r.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "have changed") {
			t.Errorf("log: %s", got)
		}
		// The receiver changes its authority: what was trusted is not any more.
		mount(t, r.dir, "3", map[string][]byte{"ca.pem": second.cert, "tls.crt": second.cert, "tls.key": second.key})
		if _, err := get(t, r.client, r.url); classOf(err) != retry.TLS {
			t.Errorf("under another authority: %v", err)
		}
	}
}

// TestHalfReplacedPair: what does not fit together changes nothing, is told once, and is over by itself.
func TestHalfReplacedPair(t *testing.T) {
	r := newRotating(t, false)
	second := selfSigned(t, "second")
	write := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(r.dir, name)
		if err := os.Remove(path); err != nil { // the link
			t.Fatal(err)
		}
		if text != nil {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("tls.crt", second.cert)
	r.is(t, "first")
	if got := r.log.String(); got != "" || r.client.TLSProblem() == "" {
		t.Errorf("a replacement under way: problem %q, log %s", r.client.TLSProblem(), got)
	}
	for range 5 {
		r.is(t, "first")
	}
	if got := r.log.String(); strings.Count(got, "cannot be used") != 1 || strings.Contains(got, "PRIVATE") {
		t.Errorf("log: %s", got)
	}
	write("tls.key", second.key)
	r.is(t, "second")
	if got := r.client.TLSProblem(); got != "" {
		t.Errorf("problem %q", got)
	}
	write("tls.key", nil) // not there at all
	r.is(t, "second")
	if err := os.WriteFile(filepath.Join(r.dir, "tls.key"), second.key, 0o600); err != nil {
		t.Fatal(err)
	}
	r.is(t, "second")
	if got := r.log.String(); strings.Count(got, "\n") != 2 || r.client.TLSProblem() != "" {
		t.Errorf("problem %q, log: %s", r.client.TLSProblem(), got)
	}
}

// TestAPipeInPlaceOfACertificate: nobody may write into it, and an attempt would wait beyond its time.
func TestAPipeInPlaceOfACertificate(t *testing.T) {
	r := newRotating(t, false)
	path := filepath.Join(r.dir, "tls.crt")
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := get(t, r.client, r.url); err != nil || resp.Header.Get("Client") != "first" {
			t.Errorf("%v, %v", resp, err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("an attempt waits for the pipe")
		if pipe, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			pipe.Close()
		}
		<-ended
	}
	if got := r.client.TLSProblem(); !strings.Contains(got, "ordinary file") {
		t.Errorf("problem %q", got)
	}
}

// TestRereadingUnderLoad: no request fails while the files change.
func TestRereadingUnderLoad(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		r := newRotating(t, http2)
		ca, err := os.ReadFile(filepath.Join(r.dir, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		pairs := [2]pair{selfSigned(t, "a"), selfSigned(t, "b")}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if _, err := get(t, r.client, r.url); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range 20 {
			p := pairs[i%2]
			mount(t, r.dir, "v"+string(rune('a'+i)), map[string][]byte{"ca.pem": ca, "tls.crt": p.cert, "tls.key": p.key})
		}
		wg.Wait()
		r.is(t, "b")
	}
}

func TestServerName(t *testing.T) {
	var asked sync.Map
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.TLS.ServerName, r.Host)
	}))
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	defer srv.Close()
	port := portOf(srv.Listener.Addr().String())
	dns := zone("inside.example", "127.0.0.1")
	f := newForward(t, false, srv.Listener.Addr().String())
	options := egress.Options{Policy: private, Resolver: dns.resolver(), TLS: egress.TLS{CAFile: pemFile(t, "CERTIFICATE", srv.Certificate().Raw)}}
	url := "https://inside.example:" + port + "/"
	if _, err := get(t, newClient(t, options), url); classOf(err) != retry.TLS {
		t.Errorf("the certificate is for another name: %v", err)
	}
	for _, proxy := range []string{"", f.URL} {
		options.Proxy, options.TLS.ServerName = proxy, "example.com"
		if _, err := get(t, newClient(t, options), url); err != nil {
			t.Errorf("proxy %q: %v", proxy, err)
		}
		if host, _ := asked.LoadAndDelete("example.com"); host != "inside.example:"+port {
			t.Errorf("proxy %q: Host %v", proxy, host)
		}
		options.TLS.ServerName = "other.example"
		if _, err := get(t, newClient(t, options), url); classOf(err) != retry.TLS {
			t.Errorf("proxy %q, a name that the certificate does not have: %v", proxy, err)
		}
	}
}

func TestMinVersion(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	srv.Config.ErrorLog = quiet
	srv.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
	srv.StartTLS()
	defer srv.Close()
	ca := pemFile(t, "CERTIFICATE", srv.Certificate().Raw)
	for version, want := range map[uint16]retry.Class{0: "none", tls.VersionTLS10: "none", tls.VersionTLS12: "none", tls.VersionTLS13: retry.TLS} {
		c := newClient(t, egress.Options{Policy: private, TLS: egress.TLS{CAFile: ca, MinVersion: version}})
		if _, err := get(t, c, srv.URL); classOf(err) != want {
			t.Errorf("%x: %v, want %s", version, err, want)
		}
	}
}
