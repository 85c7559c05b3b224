package signing

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/textproto"
	"strings"
)

// Scheme says which headers carry the signature, and what exactly is signed.
type Scheme string

// The schemes.
const (
	// None signs nothing. A [Verifier] refuses it: nothing could be checked.
	None Scheme = "none"
	// Standard is Standard Webhooks: the headers webhook-id, webhook-timestamp and webhook-signature; each secret adds
	// one signature.
	Standard Scheme = "standard"
	// Stripe is Stripe's: one header with t=TIMESTAMP and, for each secret, v1=HEX.
	Stripe Scheme = "stripe"
	// Hub is sha256=HEX in X-Hub-Signature-256. It has room for one signature: the first secret's.
	Hub Scheme = "hub"
	// Template is one header whose value follows a pattern, see [CheckTemplate]. The first secret signs.
	Template Scheme = "template"
)

// The names of the headers, as Go's net/http writes them.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerStripe    = "Stripe-Signature"
	headerHub       = "X-Hub-Signature-256"

	// What Postern sends beside every signature; the template scheme reads them.
	headerEventID  = "Postern-Event-Id"
	headerDelivery = "X-Delivery-Timestamp"
)

// Header is one header field.
type Header struct {
	Name, Value string
}

// Headers lists the headers that a scheme writes. own is the header of one's own choice, for Stripe and Template.
func (s Scheme) Headers(own string) []string {
	switch s {
	case Standard:
		return []string{headerID, headerTimestamp, headerSignature}
	case Stripe:
		if own == "" {
			own = headerStripe
		}
		return []string{own}
	case Hub:
		return []string{headerHub}
	case Template:
		return []string{own}
	}
	return nil
}

// ParseSecret turns a secret as people exchange it into the key that signs. For [Standard] that is base64, with or
// without whsec_ before it; for the other schemes the text itself, whsec_ included. Errors do not repeat the secret.
func ParseSecret(s Scheme, text string) ([]byte, error) {
	if err := checkSecret(text); err != nil {
		return nil, err
	}
	if s != Standard {
		return []byte(text), nil
	}
	text = strings.TrimPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		key, err = base64.RawStdEncoding.DecodeString(text)
	}
	if err != nil || len(key) == 0 {
		return nil, errors.New("a secret of the scheme standard is base64, with or without whsec_ before it; this one cannot be decoded")
	}
	return key, nil
}

// checkSecret refuses what nobody gives a receiver as a secret: two of them below each other, which would sign as one that
// the receiver does not have, or what cannot be seen. Decoding base64 passes over line breaks.
func checkSecret(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the secret is empty")
	case strings.ContainsAny(text, "\r\n"):
		return errors.New("the secret has a line break in it; write one secret per file, and for a rotation one entry of sign.secrets for each, newest first")
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return errors.New("the secret has a control character in it; remove it")
	}
	return nil
}

// format is how one scheme writes and reads.
type format interface {
	// sign returns the headers for one request.
	sign(m message, secrets [][]byte) []Header
	// read finds out what a received request claims, without judging it.
	read(h received) (claim, error)
}

// Config says how requests are signed.
type Config struct {
	Scheme Scheme
	// Header is a header of one's own choice: for Stripe instead of Stripe-Signature, for Template always.
	Header string
	// Template is the pattern of the scheme Template, see CheckTemplate.
	Template string
	// Secrets are keys as ParseSecret returns them, newest first.
	Secrets [][]byte
}

// format checks the configuration and finds the scheme. It wraps ErrSetup.
func (c Config) format() (format, error) {
	if len(c.Secrets) == 0 {
		return nil, fmt.Errorf("%w: there is no secret", ErrSetup)
	}
	for _, secret := range c.Secrets {
		if len(secret) == 0 {
			return nil, fmt.Errorf("%w: a secret is empty", ErrSetup)
		}
	}
	own := textproto.CanonicalMIMEHeaderKey(c.Header)
	if strings.ContainsAny(own, " \t\r\n:\x00") {
		return nil, fmt.Errorf("%w: the header's name is not one", ErrSetup)
	}
	switch c.Scheme {
	case Standard:
		return standard{}, nil
	case Stripe:
		return stripe{header: c.Scheme.Headers(own)[0]}, nil
	case Hub:
		return hub{}, nil
	case Template:
		if own == "" {
			return nil, fmt.Errorf("%w: the scheme template needs a header", ErrSetup)
		}
		pattern, err := parseTemplate(c.Template)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSetup, err)
		}
		return template{header: own, pattern: pattern}, nil
	}
	return nil, fmt.Errorf("%w: the scheme %q neither signs nor can be checked", ErrSetup, c.Scheme)
}
