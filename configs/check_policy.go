package configs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"time"

	"postern/proxy/signing"
)

// scope reports rules of one policy block. What the block inherits was checked where it comes from: a rule is
// reported only where the block itself sets one of its keys.
type scope struct {
	r          *reader
	at, parent string
}

func (s scope) require(ok bool, names []string, format string, args ...any) {
	if ok {
		return
	}
	keys := make([]string, len(names))
	own := s.parent == ""
	for i, name := range names {
		keys[i] = joinPath(s.at, name)
		own = own || s.r.has(keys[i])
		if s.parent != "" && s.r.failed[joinPath(s.parent, name)] {
			return
		}
	}
	if own {
		s.r.require(false, keys, format, args...)
	}
}

// check holds the settings of a policy against each other. parent is the block that it inherits from, or empty.
func (p *Policy) check(r *reader, at, parent string) {
	s := scope{r, at, parent}
	s.require(p.Retry.BaseDelay <= p.Retry.MaxDelay, []string{"retry.base_delay", "retry.max_delay"},
		"base_delay (%s) is more than max_delay (%s); lower it, or raise max_delay",
		formatDuration(p.Retry.BaseDelay), formatDuration(p.Retry.MaxDelay))
	s.require(p.Breaker.Cooldown <= p.Breaker.MaxCooldown, []string{"breaker.cooldown", "breaker.max_cooldown"},
		"cooldown (%s) is more than max_cooldown (%s); lower it, or raise max_cooldown",
		formatDuration(p.Breaker.Cooldown), formatDuration(p.Breaker.MaxCooldown))
	p.checkLimits(s)
	p.checkSign(s)
}

func (p *Policy) checkLimits(s scope) {
	windows := make(map[time.Duration]bool)
	for _, limit := range p.Limits {
		s.require(!windows[limit.Per], []string{"limits"},
			"two limits have the window %s; keep the lower one", formatDuration(limit.Per))
		windows[limit.Per] = true
	}
	if len(p.Limits) == 0 {
		return
	}
	shortest := slices.MinFunc(p.Limits, func(a, b Limit) int { return int(min(max(a.Per-b.Per, -1), 1)) })
	s.require(p.Burst <= shortest.N, []string{"burst", "limits"},
		"a burst of %d is more than the limit %s lets through; write %d or less", p.Burst, shortest, shortest.N)
}

func (p *Policy) checkSign(s scope) {
	sign := &p.Sign
	signs := sign.Scheme != SchemeNone
	has := func(name string) bool { return s.r.has(joinPath(s.at, name)) }
	s.require(!signs || len(sign.texts) > 0, []string{"sign.scheme", "sign.secrets"},
		`the scheme %s needs a secret; write sign.secrets: ["file:PATH"] or ["${VAR}"]`, sign.Scheme)
	s.require(signs || !has("sign.secrets") || len(sign.texts) == 0, []string{"sign.secrets", "sign.scheme"},
		"the secrets are not used while sign.scheme is none; write standard, stripe or hub there, or remove them")
	sign.checkHeader(s)
	sign.Secrets = nil
	for i, text := range sign.texts {
		key, err := signing.ParseSecret(signing.Scheme(sign.Scheme), text)
		s.require(err == nil, []string{indexPath("sign.secrets", i), "sign.secrets", "sign.scheme"}, "%v", err)
		sign.Secrets = append(sign.Secrets, key)
	}
	names := signing.Scheme(sign.Scheme).Headers(sign.Header)
	for _, header := range p.Headers.Set {
		s.require(!slices.ContainsFunc(names, func(own string) bool { return strings.EqualFold(own, header.Name) }),
			[]string{"headers.set." + header.Name, "sign.scheme"}, "the signature is in this header; remove it")
	}
}

// checkHeader holds header and template against the scheme. What is inherited and of no use to the scheme is let pass.
func (sign *Sign) checkHeader(s scope) {
	has := func(name string) bool { return s.r.has(joinPath(s.at, name)) }
	own := sign.Scheme == SchemeStripe || sign.Scheme == SchemeTemplate
	s.require(own || !has("sign.header") || sign.Header == "", []string{"sign.header", "sign.scheme"},
		"only the schemes stripe and template have a header of your choice; remove it, or write one of them as sign.scheme")
	templated := sign.Scheme == SchemeTemplate
	s.require(templated || !has("sign.template") || sign.Template == "", []string{"sign.template", "sign.scheme"},
		"the template is not used by the scheme %s; remove it, or write sign.scheme: template", sign.Scheme)
	s.require(!templated || sign.Header != "", []string{"sign.scheme", "sign.header"},
		"the scheme template needs the name of a header; write sign.header: X-Signature, or as the receiver calls it")
	s.require(!templated || sign.Template != "", []string{"sign.scheme", "sign.template"},
		"the scheme template needs sign.template, such as 'sha256={hex({timestamp}.{body})}'")
}

// checkTLS makes the paths absolute in relation to the configuration file, and tries to load the files.
func (p *Policy) checkTLS(r *reader, at string) {
	t := &p.TLS
	for _, name := range []*string{&t.CAFile, &t.CertFile, &t.KeyFile} {
		if *name != "" {
			*name = inDir(r.base, *name)
		}
	}
	cert, key := joinPath(at, "cert_file"), joinPath(at, "key_file")
	if t.CAFile != "" {
		err := checkRoots(t.CAFile)
		r.require(err == nil, []string{joinPath(at, "ca_file")}, "%v", err)
	}
	switch {
	case t.CertFile == "" && t.KeyFile == "":
	case t.CertFile == "" || t.KeyFile == "":
		r.require(false, []string{cert, key}, "cert_file and key_file belong together; write both")
	default:
		err := checkKeyPair(t.CertFile, t.KeyFile)
		r.require(err == nil, []string{cert, key}, "the client certificate cannot be loaded: %v; write the PEM files of a certificate and its key", nameless(err))
	}
}

func checkKeyPair(certFile, keyFile string) error {
	cert, err := readAgain(certFile, maxFileBytes)
	if err != nil {
		return err
	}
	key, err := readAgain(keyFile, maxFileBytes)
	if err != nil {
		return err
	}
	_, err = tls.X509KeyPair(cert, key)
	return err
}

func checkRoots(name string) error {
	pem, err := readAgain(name, maxFileBytes)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return errors.New("there is no certificate in the file; write a PEM file of the authority's certificates")
	}
	return nil
}
