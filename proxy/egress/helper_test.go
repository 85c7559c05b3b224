package egress_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"postern/proxy/egress"
)

// TestMain fails the run if a connection's goroutine outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	for until := time.Now().Add(time.Minute); code == 0; runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(stacks, []byte("persistConn")) && !bytes.Contains(stacks, []byte("dialConn")) && !bytes.Contains(stacks, []byte("http2ClientConn")) {
			break
		}
		if time.Now().After(until) {
			fmt.Fprintf(os.Stderr, "goroutines are left over:\n%s\n", stacks)
			code = 1
		}
	}
	os.Exit(code)
}

// names is a resolver's zone that can be changed while it is in use.
type names struct {
	mu    sync.Mutex // guards what follows
	addrs map[string][]string
	turns map[string][]string
	asked map[string]int
}

func (n *names) set(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs[name] = addrs
}

// turn has a name lead elsewhere with each question of one type, in turns.
func (n *names) turn(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turns[name] = addrs
}

func (n *names) lookup(question dnsmessage.Question) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.TrimSuffix(question.Name.String(), ".")
	if turns := n.turns[name]; len(turns) > 0 {
		key := name + question.Type.String()
		n.asked[key]++
		return turns[(n.asked[key]-1)%len(turns):][:1]
	}
	return n.addrs[name]
}

// resolver answers from the zone, A with IPv4 addresses and AAAA with IPv6 ones; unknown names do not exist.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go n.serve(there)
		return here, nil
	}}
}

func (n *names) serve(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := n.answer(query)
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}

func (n *names) answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	question := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	addrs := n.lookup(question)
	if addrs == nil {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, addr := range addrs {
		ip := netip.MustParseAddr(addr)
		head := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 0}
		switch {
		case ip.Is4() && question.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && question.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	packed, _ := m.Pack()
	return packed
}

func zone(pairs ...string) *names {
	n := &names{addrs: map[string][]string{}, turns: map[string][]string{}, asked: map[string]int{}}
	for i := 0; i < len(pairs); i += 2 {
		n.addrs[pairs[i]] = append(n.addrs[pairs[i]], pairs[i+1])
	}
	return n
}

// canary is a listener to which no connection may be made.
func canary(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
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
			t.Errorf("a connection was made to %s", l.Addr())
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func newClient(t *testing.T, o egress.Options) *egress.Client {
	t.Helper()
	c, err := egress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// get makes one GET and drains the answer.
func get(t *testing.T, c http.RoundTripper, url string) (*http.Response, error) {
	t.Helper()
	return getWithin(t, c, url, time.Minute)
}

func getWithin(t *testing.T, c http.RoundTripper, url string, limit time.Duration) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return resp, err
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// quiet keeps the servers' remarks about handshakes that are meant to fail out of the output.
var quiet = log.New(io.Discard, "", 0)

func quietTLS(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// pemFile writes one PEM block into a file of its own.
func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientCert makes a self-signed client certificate.
func clientCert(t *testing.T) (cert *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "postern"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return cert, pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", keyDER)
}
