package egress

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS is how an endpoint's receivers are spoken to over TLS. All of it is optional; files are PEM.
type TLS struct {
	// CAFile replaces the system's roots.
	CAFile string
	// CertFile and KeyFile are a client certificate for receivers that ask for one.
	CertFile, KeyFile string
	// MinVersion is the oldest version that is spoken, such as tls.VersionTLS13; zero means TLS 1.2.
	MinVersion uint16
	// ServerName is the name that is asked for (SNI) and that the certificate must have; empty means the target's host.
	ServerName string
}

// texts are the contents of a TLS's files at one time: CA, certificate, key.
type texts [3]string

// read reads the files that are named. A certificate is of no use without its key.
func (t TLS) read() (texts, error) {
	var all texts
	if (t.CertFile == "") != (t.KeyFile == "") {
		return all, ErrKeyPair
	}
	for i, file := range []struct{ key, name string }{{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile}} {
		if file.name == "" {
			continue
		}
		text, err := readFile(file.name)
		if err != nil {
			return all, fmt.Errorf("read %s: %w", file.key, err)
		}
		all[i] = string(text)
	}
	return all, nil
}

// readFile reads an ordinary file. Reading a pipe that came to be in its place would hold up the endpoint's attempts.
func readFile(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotFile
	}
	return os.ReadFile(name)
}

// config makes what crypto/tls wants of what the files hold.
func (t TLS) config(files texts) (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion: max(t.MinVersion, tls.VersionTLS12),
		ServerName: t.ServerName,
		NextProtos: []string{"http/1.1"}, // RFC 7301: a receiver that knows HTTP/2 alone must say so at once
	}
	if t.CAFile != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(files[0])) {
			return nil, fmt.Errorf("ca_file %s: %w", t.CAFile, ErrCA)
		}
	}
	if t.CertFile == "" {
		return cfg, nil
	}
	pair, err := tls.X509KeyPair([]byte(files[1]), []byte(files[2]))
	if err != nil {
		return nil, fmt.Errorf("load cert_file %s and key_file %s: %w", t.CertFile, t.KeyFile, err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

// load reads and makes in one go.
func (t TLS) load() (texts, *tls.Config, error) {
	files, err := t.read()
	if err != nil {
		return files, nil, err
	}
	cfg, err := t.config(files)
	return files, cfg, err
}
