// Package keyfile reads the files that hold the keys of an encrypted spool.
//
// It promises that what it returns has the right length and was not emptied, and that no error repeats what a file holds. It
// leaves out reading files, and everything that is done with keys.
package keyfile

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// Size is the length of a key in bytes.
const Size = 32

// ErrNoKey means that a file's content is no key. Its text never repeats the content.
var ErrNoKey = errors.New("it holds no key: 32 random bytes are needed, one key per file, as base64, as 64 hexadecimal digits or as they are; make one with `openssl rand -base64 32`")

// Parse reads a key as it stands in a file: base64 (standard or URL alphabet, padded or not), 64 hexadecimal digits, or the
// 32 bytes themselves. White space around text is ignored.
func Parse(data []byte) ([]byte, error) {
	if len(data) == Size {
		return checked(append([]byte(nil), data...))
	}
	text := strings.TrimSpace(string(data))
	if len(text) == hex.EncodedLen(Size) {
		if key, err := hex.DecodeString(text); err == nil {
			return checked(key)
		}
	}
	text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	if key, err := base64.RawStdEncoding.Strict().DecodeString(text); err == nil && len(key) == Size {
		return checked(key)
	}
	return nil, ErrNoKey
}

// checked refuses the keys that nobody drew at random: one byte repeated, such as an emptied file.
func checked(key []byte) ([]byte, error) {
	for _, b := range key {
		if b != key[0] {
			return key, nil
		}
	}
	return nil, ErrNoKey
}
