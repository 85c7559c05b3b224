package configs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSecretsFromFiles(t *testing.T) {
	for _, tc := range []struct {
		name, content, want, problem string
	}{
		{"plain", "key", "key", ""},
		{"line break at the end", "key\n", "key", ""},
		{"several, of Windows", "key\r\n\r\n", "key", ""},
		{"what looks like a variable is none", "${HOME}$", "${HOME}$", ""},
		{"blanks inside", "Bearer a b", "Bearer a b", ""},
		{"empty", "", "", "is empty"},
		{"a line break alone", "\n", "", "is empty"},
		{"blanks alone", " \t\n", "", "is empty"},
		{"line break inside", "SEC\nRET", "", "control character"},
		{"NUL", "SEC\x00", "", "control character"},
		{"a whole log", strings.Repeat("SEC", 30_000), "", "longer than 64KiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "key", tc.content)
			write(t, dir, "postern.yaml", at(`headers: { set: { X-Key: "file:key" } }`))
			c, err := Load(Options{Dir: dir, Getenv: env{}.get})
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "SEC") {
					t.Fatalf("error %v, want one that says %q", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Endpoints[0].Policy.Headers.Set[0].Value; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	for content, problem := range map[string]string{
		"tok\n": "", "tok\r\nold\n": "", "tok\nSEC RET": "one word", "tok\n\nold": "one word", "\n": "is empty", "SEC\x01b": "control character",
	} {
		dir := t.TempDir()
		write(t, dir, "token", content)
		write(t, dir, "postern.yaml", "admin: { listen: \":8090\", token_file: token }\n")
		c, err := Load(Options{Dir: dir, Getenv: env{}.get})
		switch {
		case problem == "" && (err != nil || string(c.Admin.Token) != "tok"):
			t.Errorf("%q: %v", content, err)
		case problem != "" && (err == nil || !strings.HasPrefix(err.Error(), "postern.yaml:1:39: admin.token_file: ") || !strings.Contains(err.Error(), problem)):
			t.Errorf("%q: error %v, want one that says %q", content, err, problem)
		case problem != "" && strings.Contains(err.Error(), "SEC"):
			t.Errorf("the error repeats the token: %v", err)
		}
	}
}

// TestTwoSecretsInOneFile: below each other they would sign as one secret that no receiver has.
func TestTwoSecretsInOneFile(t *testing.T) {
	for content, problem := range map[string]string{
		"U0VDUkVU\nU0VDUkVUMg==\n": "line break", "SECRET\r\nSECRET2": "line break", "SEC\tRET": "control character", "SEC\x00RET": "control character", "  \n": "is empty",
	} {
		for _, scheme := range []string{"standard", "stripe", "hub"} {
			dir := t.TempDir()
			write(t, dir, "two", content)
			text := at("sign: { scheme: " + scheme + `, secrets: [c2VjcmV0, "file:two", "${TWO}"] }`)
			write(t, dir, "postern.yaml", text)
			_, err := Load(Options{Dir: dir, Getenv: env{"TWO": content}.get})
			if err == nil || strings.Count(err.Error(), "endpoints[0].sign.secrets[") != 2 || strings.Count(err.Error(), problem) != 2 && problem != "is empty" ||
				!strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "SEC") || strings.Contains(err.Error(), "U0V") {
				t.Errorf("%s, %q: %v", scheme, content, err)
			}
			if problem == "line break" && !strings.Contains(err.Error(), "one secret per file, and for a rotation one entry of sign.secrets") {
				t.Errorf("%q: %v", content, err)
			}
		}
	}
}

// Rotation: all secrets are kept, newest first, whatever way each is given.
func TestSecretsKeepTheirOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "new", "new\n")
	write(t, dir, "postern.yaml", at(`sign: { scheme: stripe, header: X-Sig, secrets: ["file:new", "${OLD}", oldest] }`))
	c, err := Load(Options{Dir: dir, Getenv: env{"OLD": "old"}.get})
	if err != nil {
		t.Fatal(err)
	}
	sign := c.Endpoints[0].Policy.Sign
	if got := fmt.Sprintf("%s", sign.Secrets); got != "[new old oldest]" || sign.Header != "X-Sig" {
		t.Errorf("got %s in %s", got, sign.Header)
	}
}

func TestTLSFilesAreLoaded(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t)
	write(t, dir, "c.pem", cert)
	write(t, dir, "k.pem", key)
	_, otherKey := certificate(t)
	write(t, dir, "other.pem", otherKey)

	write(t, dir, "postern.yaml", at("tls: { ca_file: c.pem, cert_file: c.pem, key_file: k.pem }"))
	c, err := Load(Options{Dir: dir, Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	want := TLS{filepath.Join(dir, "c.pem"), filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), "1.2", ""}
	if got := c.Endpoints[0].Policy.TLS; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	write(t, dir, "postern.yaml", at("tls: { cert_file: c.pem, key_file: other.pem }"))
	_, err = Load(Options{Dir: dir, Getenv: env{}.get})
	if err == nil || !strings.HasPrefix(err.Error(), "postern.yaml:4:23: endpoints[0].tls.cert_file: ") {
		t.Errorf("a key that does not belong to the certificate: %v", err)
	}
}

// certificate makes a self-signed certificate and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}
