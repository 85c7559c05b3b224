package signing

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// standard is Standard Webhooks 1.0, symmetric signatures (v1) alone.
type standard struct{}

func (standard) sign(m message, secrets [][]byte) []Header {
	entries := make([]string, len(secrets))
	for i, secret := range secrets {
		entries[i] = "v1," + base64.StdEncoding.EncodeToString(standardSum(secret, m))
	}
	return []Header{
		{headerID, m.id},
		{headerTimestamp, m.timestamp},
		{headerSignature, strings.Join(entries, " ")},
	}
}

func standardSum(secret []byte, m message) []byte {
	return sum(secret, m.id+"."+m.timestamp+".", m.body, "")
}

func (standard) read(r received) (claim, error) {
	values, err := r.each(headerID, headerTimestamp, headerSignature)
	if err != nil {
		return claim{}, err
	}
	m := message{values[0], values[1], r.body}
	c := claim{sum: func(secret []byte) []byte { return standardSum(secret, m) }}
	if c.at, err = timestamp(headerTimestamp, m.timestamp); err != nil {
		return claim{}, err
	}
	known := false
	for entry := range strings.SplitSeq(values[2], " ") {
		version, text, _ := strings.Cut(entry, ",")
		if version != "v1" { // v1a is asymmetric, and others may come: the specification lets them stand beside ours
			continue
		}
		known = true
		if signature, err := base64.StdEncoding.Strict().DecodeString(text); err == nil {
			c.signatures = append(c.signatures, signature)
		}
	}
	if !known {
		return claim{}, fmt.Errorf("%w: %s has no entry v1,…", ErrMalformed, headerSignature)
	}
	return c, nil
}
