package signing

import (
	"crypto/hmac"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// DefaultTolerance is how far a request's timestamp may be from the receiver's clock, either way, where nothing else is
// said. Standard Webhooks and Stripe use the same.
const DefaultTolerance = 5 * time.Minute

// Verifier checks received requests. Its zero value accepts none. It is safe for concurrent use while nobody changes it.
type Verifier struct {
	// Scheme is how the sender signs.
	Scheme Scheme
	// Secrets are keys as ParseSecret returns them. A request that any of them signed is accepted, so that a secret can
	// be changed on both sides without a gap.
	Secrets [][]byte
	// Header is the sender's header of its own choice, for Stripe and Template.
	Header string
	// Template is the sender's pattern, for the scheme Template.
	Template string
	// Tolerance is how far the timestamp may be off, either way; DefaultTolerance if zero. Timestamps are whole seconds.
	Tolerance time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Verify returns nil if one of the secrets signed this very body and, where the scheme has a timestamp, recently. body
// is the request's as it came: one that was parsed and written again is another one. header has its names in canonical
// form, as net/http has them.
//
// An error is, by errors.Is, one of ErrMissingHeader, ErrMalformed, ErrTooOld, ErrTooNew and ErrNoMatch, the first that
// applies, or ErrSetup. To all of them but the last, the answer is 401 or 400.
func (v *Verifier) Verify(header http.Header, body []byte) error {
	f, err := Config{v.Scheme, v.Header, v.Template, v.Secrets}.format()
	if err != nil {
		return err
	}
	c, err := f.read(received{header, body})
	if err != nil {
		return err
	}
	if err := v.recent(c.at); err != nil {
		return err
	}
	if !c.signedBy(v.Secrets) {
		return ErrNoMatch
	}
	return nil
}

// recent checks the timestamp; the zero time stands for a scheme that signs none.
func (v *Verifier) recent(at time.Time) error {
	if at.IsZero() {
		return nil
	}
	now, tolerance := time.Now(), v.Tolerance
	if v.Now != nil {
		now = v.Now()
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	if now.Sub(at).Abs() > tolerance {
		return &TimestampError{At: at, Now: now, Tolerance: tolerance}
	}
	return nil
}

// claim is what a request says of itself, before it is believed.
type claim struct {
	at         time.Time // zero: the scheme signs no timestamp
	signatures [][]byte
	sum        func(secret []byte) []byte // what a signature made with this secret would be
}

// signedBy compares each signature with what each secret would have made, and always all of them.
func (c claim) signedBy(secrets [][]byte) bool {
	found := false
	for _, secret := range secrets {
		want := c.sum(secret)
		for _, signature := range c.signatures {
			if hmac.Equal(signature, want) {
				found = true
			}
		}
	}
	return found
}

// received is a request as it came.
type received struct {
	header http.Header
	body   []byte
}

// each returns the values of headers that must be there exactly once. Of two values, another reader might take the
// other one.
func (r received) each(names ...string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		all := r.header.Values(name)
		switch {
		case len(all) == 0 || all[0] == "":
			return nil, fmt.Errorf("%w: %s", ErrMissingHeader, name)
		case len(all) > 1:
			return nil, fmt.Errorf("%w: %s is there %d times", ErrMalformed, name, len(all))
		}
		values[i] = all[0]
	}
	return values, nil
}

// maxTimestamp is the longest timestamp in digits: enough for 30,000 years, and nothing overflows.
const maxTimestamp = 12

// timestamp reads Unix seconds: digits alone, so that there is one way to write a time.
func timestamp(name, text string) (time.Time, error) {
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err != nil || len(text) > maxTimestamp {
		return time.Time{}, fmt.Errorf("%w: the timestamp in %s is not a number of seconds", ErrMalformed, name)
	}
	return time.Unix(int64(seconds), 0), nil
}
