package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// authority is a CA of a test's own.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // its certificate as PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{t: t, key: key, cert: template, file: filepath.Join(t.TempDir(), "ca.pem")}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue makes a certificate for these names that ends at this time.
func (a *authority) issue(until time.Time, names ...string) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: until.Add(-24 * time.Hour),
		NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// pems is a client's certificate and key.
func (a *authority) pems(name string) (cert, key []byte) {
	a.t.Helper()
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	issued := a.issue(time.Now().Add(time.Hour), name)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// named is the configuration of one endpoint that trusts this authority.
func (a *authority) named(name, url string) string {
	return fmt.Sprintf("endpoints:\n  - { name: %s, url: %q, tls: { ca_file: %q } }\n", name, url, a.file)
}

// An expired certificate is a failure that is retried, and the event is delivered once there is a valid one.
func TestExpiredCertificateReplaced(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var mu sync.Mutex
	cert := ca.issue(time.Now().Add(-time.Hour), "localhost")
	conf := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		return &cert, nil
	}}
	r := newReceiverOn(t, "127.0.0.1:0", conf, nil)
	_, port, _ := strings.Cut(r.addr(), ":")
	p := startPostern(t, "defaults: { retry: { max_attempts: 10000, base_delay: 100ms, max_delay: 200ms }, "+patient+" }\n"+ca.named("secure", "https://localhost:"+port+"/in"))
	id := p.accept("POST", "/to/secure", "x")
	p.eventually(patience, "an attempt to fail", func() bool {
		var e event
		p.api("GET", "events/"+id, "", &e)
		return len(e.Attempts) > 0 && e.Attempts[0].Error == "tls"
	})
	mu.Lock()
	cert = ca.issue(time.Now().Add(time.Hour), "localhost")
	mu.Unlock()
	p.waitState(id, "delivered", patience)
	if q := r.wait(1, patience)[0]; q.Host != "localhost:"+port {
		t.Errorf("Host %q", q.Host)
	}
}

// A certificate of nobody we know, or for another name, is class tls, and nothing is sent.
func TestCertificateOfSomebodyElse(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	for name, cert := range map[string]tls.Certificate{
		"unknown authority": theirs.issue(time.Now().Add(time.Hour), "localhost"),
		"another name":      ours.issue(time.Now().Add(time.Hour), "other.example"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiverOn(t, "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}}, nil)
			_, port, _ := strings.Cut(r.addr(), ":")
			p := startPostern(t, calm+ours.named("secure", "https://localhost:"+port+"/"))
			e := p.waitState(p.accept("POST", "/to/secure", "x", "Postern-Max-Attempts: 1"), "dead_letter", patience)
			if e.Attempts[0].Error != "tls" || len(r.requests()) != 0 {
				t.Errorf("class %q, %d requests; want tls and none", e.Attempts[0].Error, len(r.requests()))
			}
		})
	}
}

// tunnel is an outbound proxy that connects everybody to one receiver, and remembers what it was asked for.
type tunnel struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	auth  []string
}

func newTunnel(t *testing.T, to *receiver) *tunnel {
	t.Helper()
	p := &tunnel{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.RequestURI)
		p.auth = append(p.auth, r.Header.Get("Proxy-Authorization"))
		p.mu.Unlock()
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		pipe(w, to.addr())
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *tunnel) requests() ([]string, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...), append([]string(nil), p.auth...)
}

// Host and SNI are the target's, and a default port is left out of both; a receiver that compares them is content.
func TestHostAndServerNameThroughAProxy(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var mu sync.Mutex
	var names []string
	conf := &tls.Config{
		Certificates: []tls.Certificate{ca.issue(time.Now().Add(time.Hour), "partner.example")},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, hello.ServerName)
			return nil, nil
		},
	}
	r := newReceiverOn(t, "127.0.0.1:0", conf, func(_ int, q request) reply {
		mu.Lock()
		defer mu.Unlock()
		if q.Host != names[len(names)-1] {
			return status(http.StatusMisdirectedRequest)
		}
		return reply{}
	})
	proxy := newTunnel(t, r)
	outbound := strings.Replace(proxy.URL, "http://", "http://user:SECRET1@", 1)
	p := startPostern(t, calm+"outbound_proxy: "+outbound+"\n"+ca.named("partner", "https://Partner.Example:443/in"))
	p.waitState(p.accept("POST", "/to/partner", "x"), "delivered", patience)
	p.waitState(p.accept("GET", "/http://partner.example:80/plain?a=b+c", ""), "delivered", patience)
	if q := r.wait(1, patience)[0]; q.Host != "partner.example" {
		t.Errorf("Host %q, want partner.example", q.Host)
	}
	asked, auth := proxy.requests()
	if len(asked) != 2 || !strings.EqualFold(asked[0], "CONNECT partner.example:443") || asked[1] != "GET http://partner.example/plain?a=b+c" {
		t.Errorf("the proxy was asked for %q", asked)
	}
	for _, a := range auth {
		if !strings.HasPrefix(a, "Basic ") {
			t.Errorf("Proxy-Authorization %q", a)
		}
	}
	if strings.Contains(p.log.String(), "SECRET1") {
		t.Error("the proxy's password is in the log")
	}
}

// A client certificate is shown to the endpoint that it is configured for.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	pool := x509.NewCertPool()
	b, err := os.ReadFile(ca.file)
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(b)
	r := newReceiverOn(t, "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{ca.issue(time.Now().Add(time.Hour), "localhost")}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil)
	_, port, _ := strings.Cut(r.addr(), ":")
	certFile, keyFile := filepath.Join(t.TempDir(), "client.pem"), filepath.Join(t.TempDir(), "client.key")
	cert, key := ca.pems("client")
	for file, text := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := "https://localhost:" + port + "/"
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: with, url: %q, tls: { ca_file: %q, cert_file: %q, key_file: %q } }\n  - { name: without, url: %q, tls: { ca_file: %q } }\n",
		url, ca.file, certFile, keyFile, url, ca.file))
	p.waitState(p.accept("POST", "/to/with", "x"), "delivered", patience)
	e := p.waitState(p.accept("POST", "/to/without", "x", "Postern-Max-Attempts: 1"), "dead_letter", patience)
	if e.Attempts[0].Error != "tls" {
		t.Errorf("without a client certificate: class %q, want tls", e.Attempts[0].Error)
	}
}
