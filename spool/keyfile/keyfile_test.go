package keyfile

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	key := make([]byte, Size)
	_, _ = rand.Read(key)
	key[0], key[1] = 0xfb, 0xff // + and / in base64
	for name, text := range map[string]string{
		"base64":              base64.StdEncoding.EncodeToString(key) + "\n",
		"base64 without =":    base64.RawStdEncoding.EncodeToString(key),
		"base64 for URLs":     " " + base64.URLEncoding.EncodeToString(key) + "\r\n",
		"hexadecimal":         hex.EncodeToString(key) + "\n",
		"hexadecimal, upper":  strings.ToUpper(hex.EncodeToString(key)),
		"the bytes as is":     string(key),
		"raw bytes, a blank":  " " + string(key[1:]), // blanks are trimmed from text, not from bytes
		"base64 for URLs raw": base64.RawURLEncoding.EncodeToString(key),
	} {
		got, err := Parse([]byte(text))
		want := key
		if strings.HasPrefix(name, "raw bytes") {
			want = []byte(text)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "a password": "correct horse battery staple", "too short": "c2hvcnQ=", "31 bytes": string(key[:31]), "33 bytes": string(key) + "x",
		"zeros": strings.Repeat("\x00", Size), "AAAA": base64.StdEncoding.EncodeToString(make([]byte, Size)),
		"two keys": hex.EncodeToString(key) + "\n" + hex.EncodeToString(key),
	} {
		if got, err := Parse([]byte(text)); !errors.Is(err, ErrNoKey) || got != nil {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("c2hvcnQ="))
	f.Add(bytes.Repeat([]byte("a1"), Size))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := Parse(data)
		if (err == nil) != (len(key) == Size) {
			t.Errorf("%d bytes, %v", len(key), err)
		}
	})
}
