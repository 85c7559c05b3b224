package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTemplates(t *testing.T) {
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	b := string(body)
	for text, want := range map[string]string{
		"{hex({body})}":                               hex.EncodeToString(mac(b)),
		"sha256={hex({timestamp}.{body})}":            "sha256=" + hex.EncodeToString(mac("1700000000."+b)),
		"{base64({body}{id})}":                        base64.StdEncoding.EncodeToString(mac(b + "evt_1")),
		"{base64({id}\n{timestamp}\n{body})}":         base64.StdEncoding.EncodeToString(mac("evt_1\n1700000000\n" + b)),
		"id={id} ts={timestamp} {hex((a){body})} end": "id=evt_1 ts=1700000000 " + hex.EncodeToString(mac("(a)"+b)) + " end",
	} {
		c := Config{Scheme: Template, Header: "x-signature", Template: text}
		h := c.signs(t)
		if got := h.Get("X-Signature"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		v := c.verifier()
		if err := v.Verify(h, body); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := CheckTemplate(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTemplatesThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "no signature",
		"{body}":                        "no signature",
		"{hex{body}}":                   "no signature",
		"{hex({body})":                  "does not end",
		"{hex({id})}":                   "does not sign the body",
		"{hex({body}{body})}":           "no placeholder",
		"{hex({body})}{hex({body})}":    "no placeholder",
		"{base64({body})}{hex({body})}": "no placeholder",
		"{body}{hex({body})}":           "no placeholder",
		"{time}{hex({body})}":           "no placeholder",
		"{hex({time}{body})}":           "no placeholder",
		"{hex({base64({body})})}":       "no placeholder",
		"é{hex({body})}":                "cannot be sent",
		"{hex({body})}\n":               "cannot be sent",
		" {hex({body})}":                "blank",
		"{hex({body})} ":                "blank",
	} {
		if err := CheckTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A timestamp that is not signed is no proof of anything, so that it is not looked at; one that is signed counts.
func TestTemplateTimestamp(t *testing.T) {
	for text, want := range map[string]error{
		"t={timestamp},{hex({body})}": nil,
		"{hex({timestamp}{body})}":    ErrTooOld,
		"{hex({body}{timestamp})}":    ErrTooOld,
	} {
		c := Config{Scheme: Template, Header: "X-Own", Template: text}
		v, h := c.verifier(), c.signs(t)
		v.Now = func() time.Time { return moment.Add(2 * DefaultTolerance) }
		if err := v.Verify(h, body); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("sha256={hex({timestamp}.{body})}")
	f.Add("{base64({id}|{body})};{timestamp}")
	f.Fuzz(func(t *testing.T, text string) {
		if CheckTemplate(text) != nil {
			return
		}
		c := Config{Scheme: Template, Header: "X-Own", Template: text}
		v, h := c.verifier(), c.signs(t)
		if err := v.Verify(h, body); err != nil {
			t.Fatalf("%q: what it signs it does not accept: %v", text, err)
		}
		if value := h.Get("X-Own"); strings.ContainsAny(value, "\r\n\x00") || strings.TrimSpace(value) != value {
			t.Fatalf("%q makes a value that cannot be sent: %q", text, value)
		}
		if err := v.Verify(h, append([]byte("x"), body...)); err == nil {
			t.Fatalf("%q does not sign the body", text)
		}
	})
}
