package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// h2receiver is a receiver that speaks HTTP/2, and tells for each request by which protocol and from which client it came.
type h2receiver struct {
	*httptest.Server
	mu   sync.Mutex // guards what follows
	seen []string   // protocol, request target, client certificate's name
}

func newH2Receiver(t *testing.T, ca *authority) *h2receiver {
	t.Helper()
	r := &h2receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		client := "nobody"
		if len(q.TLS.PeerCertificates) > 0 {
			client = q.TLS.PeerCertificates[0].Subject.CommonName
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, q.Proto+" "+q.RequestURI+" "+client)
	}))
	r.EnableHTTP2 = true
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.TLS = &tls.Config{Certificates: []tls.Certificate{ca.issue(time.Now().Add(time.Hour), "partner.example")}, ClientAuth: tls.RequestClientCert, MaxVersion: tls.VersionTLS12}
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *h2receiver) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.seen...)
}

func (r *h2receiver) port() string { return r.URL[strings.LastIndexByte(r.URL, ':')+1:] }

// Each endpoint is spoken to as its settings say: the protocol, the name in the certificate, and the oldest version of TLS.
func TestProtocolNameAndVersion(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	r := newH2Receiver(t, ca)
	var endpoints strings.Builder
	for name, settings := range map[string]string{
		"two": "", "one": "http2: false, ", "new": "", "other": "",
	} {
		tls := "server_name: partner.example"
		switch name {
		case "new":
			tls += ", min_version: \"1.3\"" // the receiver's best is 1.2
		case "other":
			tls = "min_version: \"1.2\"" // localhost is not in the certificate
		}
		fmt.Fprintf(&endpoints, "  - { name: %s, url: \"https://localhost:%s/%s?a=b+c\", %stls: { ca_file: %q, %s } }\n", name, r.port(), name, settings, ca.file, tls)
	}
	p := startPostern(t, calm+"endpoints:\n"+endpoints.String())
	for _, name := range []string{"two", "two", "one"} {
		p.waitState(p.accept("POST", "/to/"+name, "x"), "delivered", patience)
	}
	for _, name := range []string{"new", "other"} {
		e := p.waitState(p.accept("POST", "/to/"+name, "x", "Postern-Max-Attempts: 1"), "dead_letter", patience)
		if e.Attempts[0].Error != "tls" {
			t.Errorf("%s: class %q, want tls", name, e.Attempts[0].Error)
		}
	}
	want := []string{"HTTP/2.0 /two?a=b+c nobody", "HTTP/2.0 /two?a=b+c nobody", "HTTP/1.1 /one?a=b+c nobody"}
	if got := r.requests(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A client certificate that is replaced on disk is used without a reload; a pair that does not fit together is told in the log
// and by the API, and the one before stays in force.
func TestReplacedClientCertificate(t *testing.T) {
	t.Parallel()
	ca, theirs := newAuthority(t), newAuthority(t)
	r := newH2Receiver(t, ca)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	replace := func(from *authority, name string, files ...string) {
		t.Helper()
		cert, key := from.pems(name)
		for file, text := range map[string][]byte{certFile: cert, keyFile: key} {
			if len(files) > 0 && files[0] != file {
				continue
			}
			if err := os.WriteFile(file+".new", text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace(ca, "first")
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner, url: \"https://localhost:%s/\", tls: { ca_file: %q, server_name: partner.example, cert_file: %q, key_file: %q } }\n",
		r.port(), ca.file, certFile, keyFile))
	as := func() string {
		p.waitState(p.accept("POST", "/to/partner", "x"), "delivered", patience)
		seen := r.requests()
		return seen[len(seen)-1]
	}
	if got := as(); got != "HTTP/2.0 / first" {
		t.Errorf("got %q", got)
	}
	replace(theirs, "half", keyFile)
	p.eventually(patience, "the half-replaced pair to be told", func() bool {
		if got := as(); got != "HTTP/2.0 / first" {
			t.Fatalf("with a half-replaced pair: %q", got)
		}
		var e struct {
			TLSError string `json:"tls_error"`
		}
		p.api("GET", "endpoints/partner", "", &e)
		return e.TLSError != "" && strings.Contains(p.log.String(), "the changed TLS files cannot be used")
	})
	replace(ca, "second")
	p.eventually(patience, "the new certificate to be used", func() bool { return as() == "HTTP/2.0 / second" })
}
