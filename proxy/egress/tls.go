package egress

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLSFiles are an endpoint's own TLS files, all PEM and all optional.
type TLSFiles struct {
	// CAFile replaces the system's roots.
	CAFile string
	// CertFile and KeyFile are a client certificate for receivers that ask for one.
	CertFile, KeyFile string
}

func (f TLSFiles) config() (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}, // RFC 7301: a receiver that knows HTTP/2 alone must say so at once
	}
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %s: %w", f.CAFile, ErrCA)
		}
	}
	if f.CertFile == "" && f.KeyFile == "" {
		return cfg, nil
	}
	if f.CertFile == "" || f.KeyFile == "" {
		return nil, ErrKeyPair
	}
	pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load cert_file %s and key_file %s: %w", f.CertFile, f.KeyFile, err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}
