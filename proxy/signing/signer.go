package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strconv"
	"time"
)

// Signer signs requests. It is safe for concurrent use.
type Signer struct {
	format  format
	secrets [][]byte
}

// New makes a Signer. Its error wraps ErrSetup; None is one that cannot be made.
func New(c Config) (*Signer, error) {
	f, err := c.format()
	if err != nil {
		return nil, err
	}
	secrets := make([][]byte, len(c.Secrets))
	for i, secret := range c.Secrets {
		secrets[i] = slices.Clone(secret) // whoever wipes theirs does not change ours
	}
	return &Signer{format: f, secrets: secrets}, nil
}

// Sign returns the headers that prove one request: id is the event's ID, at the time of sending, which counts in whole
// seconds, and body the exact bytes that are sent.
func (s *Signer) Sign(id string, at time.Time, body []byte) []Header {
	return s.format.sign(message{id: id, timestamp: strconv.FormatInt(at.Unix(), 10), body: body}, s.secrets)
}

// message is what a signature is about. The timestamp is text, so that a received one counts as it was written.
type message struct {
	id, timestamp string
	body          []byte
}

// sum is HMAC-SHA256 over the body with a text before it and one after it.
func sum(secret []byte, before string, body []byte, after string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(before))
	h.Write(body)
	h.Write([]byte(after))
	return h.Sum(nil)
}
