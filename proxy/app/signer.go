package app

import (
	"time"

	"postern/configs"
	"postern/proxy/delivery"
	"postern/proxy/signing"
	"postern/spool"
)

// signer gives delivery the headers of an endpoint's scheme.
type signer struct{ *signing.Signer }

// Sign makes the signature of one attempt.
func (s signer) Sign(id string, at time.Time, body []byte) []spool.Header {
	made := s.Signer.Sign(id, at, body)
	headers := make([]spool.Header, len(made))
	for i, field := range made {
		headers[i] = spool.Header(field)
	}
	return headers
}

// signs makes an endpoint's signer; nil where its requests are not signed. An error fails the start or the reload: what
// was to be signed never leaves unsigned.
func signs(s configs.Sign) (delivery.Signer, error) {
	if s.Scheme == configs.SchemeNone {
		return nil, nil
	}
	made, err := signing.New(signing.Config{
		Scheme: signing.Scheme(s.Scheme), Header: s.Header, Template: s.Template, Secrets: s.Secrets,
	})
	if err != nil {
		return nil, err
	}
	return signer{made}, nil
}
