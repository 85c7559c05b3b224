package signing

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// stripe is Stripe's scheme, in its header or another one.
type stripe struct{ header string }

func (s stripe) sign(m message, secrets [][]byte) []Header {
	value := "t=" + m.timestamp
	for _, secret := range secrets {
		value += ",v1=" + hex.EncodeToString(sum(secret, m.timestamp+".", m.body, ""))
	}
	return []Header{{s.header, value}}
}

func (s stripe) read(r received) (claim, error) {
	values, err := r.each(s.header)
	if err != nil {
		return claim{}, err
	}
	var c claim
	var at []string
	known := false
	for item := range strings.SplitSeq(values[0], ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch key {
		case "t":
			at = append(at, value)
		case "v1": // v0 is for Stripe's own tests
			known = true
			if signature, err := hex.DecodeString(value); err == nil {
				c.signatures = append(c.signatures, signature)
			}
		}
	}
	if len(at) != 1 || !known {
		return claim{}, fmt.Errorf("%w: %s is not written t=SECONDS,v1=HEX", ErrMalformed, s.header)
	}
	if c.at, err = timestamp(s.header, at[0]); err != nil {
		return claim{}, err
	}
	c.sum = func(secret []byte) []byte { return sum(secret, at[0]+".", r.body, "") }
	return c, nil
}
