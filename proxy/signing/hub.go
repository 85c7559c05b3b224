package signing

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// hub is sha256=HEX over the body alone. Receivers read one signature, so the newest secret makes it.
type hub struct{}

func (hub) sign(m message, secrets [][]byte) []Header {
	return []Header{{headerHub, "sha256=" + hex.EncodeToString(sum(secrets[0], "", m.body, ""))}}
}

func (hub) read(r received) (claim, error) {
	values, err := r.each(headerHub)
	if err != nil {
		return claim{}, err
	}
	text, ok := strings.CutPrefix(values[0], "sha256=")
	signature, err := hex.DecodeString(text)
	if !ok || err != nil {
		return claim{}, fmt.Errorf("%w: %s is not written sha256=HEX", ErrMalformed, headerHub)
	}
	return claim{
		sum:        func(secret []byte) []byte { return sum(secret, "", r.body, "") },
		signatures: [][]byte{signature},
	}, nil
}
