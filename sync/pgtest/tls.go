package pgtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// StartTLS starts a server of the test's own that speaks TLS, with a certificate for 127.0.0.1, and returns the file
// that certificate is verified with.
func StartTLS(t testing.TB) (s *Server, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pgtest"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s = Start(t)
	// The files must belong to the server's user, so they come after its folder.
	certFile, keyFile := filepath.Join(s.dir, "server.crt"), filepath.Join(s.dir, "server.key")
	err = errors.Join(s.put(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		s.put(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	if err != nil {
		t.Fatal(err)
	}
	s.options = append(s.options, "ssl=on", "ssl_cert_file="+certFile, "ssl_key_file="+keyFile)
	if err := errors.Join(s.Down(), s.Up()); err != nil {
		t.Fatal(err)
	}
	return s, certFile
}

// TLSDSN is the connection string that verifies the server with the certificates in a file.
func (s *Server) TLSDSN(caFile string) string {
	return fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=verify-full&sslrootcert=%s", password, s.port, caFile)
}
