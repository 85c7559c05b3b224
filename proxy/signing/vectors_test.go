package signing

import (
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripewebhook "github.com/stripe/stripe-go/v82/webhook"
	"pgregory.net/rapid"
)

// key is ParseSecret of a secret that is known to be good.
func key(t testing.TB, s Scheme, text string) []byte {
	t.Helper()
	k, err := ParseSecret(s, text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signed makes the headers of a request as a receiver gets them.
func signed(t testing.TB, c Config, id string, at time.Time, body []byte) http.Header {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{headerEventID: {id}, headerDelivery: {strconv.FormatInt(at.Unix(), 10)}}
	for _, field := range s.Sign(id, at, body) {
		h.Add(field.Name, field.Value)
	}
	return h
}

// The vectors that are published with the schemes: Standard Webhooks' libraries share the first one, GitHub documents
// the second.
func TestPublishedVectors(t *testing.T) {
	for _, tc := range []struct {
		scheme           Scheme
		secret, id, body string
		at               int64
		header, want     string
	}{
		{Standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, 1614265330,
			"Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		{Standard, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, 1614265330,
			"Webhook-Timestamp", "1614265330"},
		{Standard, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, 1614265330,
			"Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
		{Hub, "It's a Secret to Everybody", "", "Hello, World!", 0,
			"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
	} {
		h := signed(t, Config{Scheme: tc.scheme, Secrets: [][]byte{key(t, tc.scheme, tc.secret)}}, tc.id, time.Unix(tc.at, 0), []byte(tc.body))
		if got := h[tc.header]; !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%s: %s is %q, want %q", tc.scheme, tc.header, got, tc.want)
		}
	}
}

// The official library accepts what we sign, whatever the secret, the ID, the time and the body, and we what it signs.
func TestAgainstStandardWebhooks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		secret := rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(r, "secret")
		old := rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(r, "old")
		id := rapid.StringMatching(`[A-Za-z0-9._:-]{1,128}`).Draw(r, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(r, "body")
		at := time.Unix(rapid.Int64Range(0, 1<<38).Draw(r, "at"), rapid.Int64Range(0, 999_999_999).Draw(r, "ns"))
		h := signed(t, Config{Scheme: Standard, Secrets: [][]byte{secret, old}}, id, at, body)
		for _, k := range [][]byte{secret, old} {
			official, _ := standardwebhooks.NewWebhookRaw(k)
			if err := official.VerifyIgnoringTimestamp(body, h); err != nil {
				r.Fatalf("the official library says %v", err)
			}
			text, _ := official.Sign(id, at, body)
			h.Set("Webhook-Signature", text)
			v := Verifier{Scheme: Standard, Secrets: [][]byte{[]byte("another"), k}, Now: func() time.Time { return at }}
			if err := v.Verify(h, body); err != nil {
				r.Fatalf("of the official library's signature we say %v", err)
			}
			h = signed(t, Config{Scheme: Standard, Secrets: [][]byte{secret, old}}, id, at, body)
		}
	})
}

func TestAgainstStripe(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		secret := rapid.StringN(1, 80, -1).Draw(r, "secret")
		old := rapid.StringN(1, 80, -1).Draw(r, "old")
		body := rapid.SliceOf(rapid.Byte()).Draw(r, "body")
		at := time.Unix(rapid.Int64Range(0, 1<<38).Draw(r, "at"), 0)
		h := signed(t, Config{Scheme: Stripe, Secrets: [][]byte{[]byte(secret), []byte(old)}}, "evt_1", at, body)
		for _, k := range []string{secret, old} {
			if err := stripewebhook.ValidatePayloadIgnoringTolerance(body, h.Get("Stripe-Signature"), k); err != nil {
				r.Fatalf("stripe-go says %v", err)
			}
			theirs := "t=" + strconv.FormatInt(at.Unix(), 10) + ",v1=" + hex.EncodeToString(stripewebhook.ComputeSignature(at, body, k)) + ",v0=00"
			v := Verifier{Scheme: Stripe, Secrets: [][]byte{[]byte(k)}, Now: func() time.Time { return at }}
			if err := v.Verify(http.Header{"Stripe-Signature": {theirs}}, body); err != nil {
				r.Fatalf("of stripe-go's signature we say %v", err)
			}
		}
	})
}

// What each scheme carries of several secrets.
func TestSeveralSecrets(t *testing.T) {
	secrets := [][]byte{[]byte("new"), []byte("old")}
	at, body := time.Unix(1_700_000_000, 0), []byte("x")
	for _, tc := range []struct {
		c      Config
		header string
		mark   string
		count  int
	}{
		{Config{Scheme: Standard}, "Webhook-Signature", "v1,", 2},
		{Config{Scheme: Stripe}, "Stripe-Signature", "v1=", 2},
		{Config{Scheme: Stripe, Header: "x-sig"}, "X-Sig", "v1=", 2},
		{Config{Scheme: Hub}, "X-Hub-Signature-256", "sha256=", 1},
		{Config{Scheme: Template, Header: "x-sig", Template: "s={hex({body})}"}, "X-Sig", "s=", 1},
	} {
		tc.c.Secrets = secrets
		h := signed(t, tc.c, "evt_1", at, body)
		if got := h.Values(tc.header); len(got) != 1 || strings.Count(got[0], tc.mark) != tc.count {
			t.Errorf("%+v: %s is %q, want %d signatures in one header", tc.c.Scheme, tc.header, got, tc.count)
		}
		v := Verifier{Scheme: tc.c.Scheme, Header: tc.c.Header, Template: tc.c.Template, Now: func() time.Time { return at }}
		for i, secret := range secrets {
			v.Secrets = [][]byte{secret}
			err := v.Verify(h, body)
			if accepted := err == nil; accepted != (i < tc.count) {
				t.Errorf("%s, secret %d alone: %v", tc.c.Scheme, i, err)
			}
		}
		v.Secrets = [][]byte{[]byte("third"), secrets[0]}
		if err := v.Verify(h, body); err != nil {
			t.Errorf("%s, among others: %v", tc.c.Scheme, err)
		}
		names := tc.c.Scheme.Headers(tc.c.Header)
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, tc.header) }) {
			t.Errorf("Headers says %q, without %s", names, tc.header)
		}
	}
}

// A signer keeps its secrets although the caller wipes the slices.
func TestSignerKeepsItsSecrets(t *testing.T) {
	secret := []byte("secret")
	s, err := New(Config{Scheme: Hub, Secrets: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	before := s.Sign("", time.Time{}, nil)
	clear(secret)
	if after := s.Sign("", time.Time{}, nil); !slices.Equal(before, after) {
		t.Errorf("the signature changed with the caller's slice")
	}
}

func TestSetup(t *testing.T) {
	one := [][]byte{[]byte("SECRET")}
	for name, c := range map[string]Config{
		"nothing":             {},
		"none":                {Scheme: None, Secrets: one},
		"unknown":             {Scheme: "SECRETive", Secrets: one},
		"no secret":           {Scheme: Standard},
		"an empty secret":     {Scheme: Hub, Secrets: [][]byte{one[0], {}}},
		"no header":           {Scheme: Template, Template: "{hex({body})}", Secrets: one},
		"no template":         {Scheme: Template, Header: "X-Sig", Secrets: one},
		"not a header's name": {Scheme: Stripe, Header: "X Sig", Secrets: one},
	} {
		if _, err := New(c); !errors.Is(err, ErrSetup) {
			t.Errorf("%s: New says %v", name, err)
		}
		v := Verifier{Scheme: c.Scheme, Secrets: c.Secrets, Header: c.Header, Template: c.Template}
		if err := v.Verify(http.Header{}, nil); !errors.Is(err, ErrSetup) {
			t.Errorf("%s: Verify says %v", name, err)
		}
	}
}

func TestParseSecret(t *testing.T) {
	for _, tc := range []struct {
		scheme     Scheme
		text, want string
		ok         bool
	}{
		{Standard, "c2VjcmV0", "secret", true},
		{Standard, "whsec_c2VjcmV0", "secret", true},
		{Standard, "c2VjcmV0cw==", "secrets", true},
		{Standard, "c2VjcmV0cw", "secrets", true},
		{Standard, "", "", false},
		{Standard, "whsec_", "", false},
		{Standard, "whsec_SECRET!", "", false},
		{Stripe, "whsec_c2VjcmV0", "whsec_c2VjcmV0", true},
		{Hub, "two words", "two words", true},
		{Hub, "", "", false},
		{Hub, " \t ", "", false},
		{Hub, "SECRET\nSECRET", "", false},
		{Stripe, "SECRET\rSECRET", "", false},
		{Standard, "c2Vj\ncmV0", "", false},
		{Template, "SECRET\x7f", "", false},
	} {
		got, err := ParseSecret(tc.scheme, tc.text)
		if string(got) != tc.want || (err == nil) != tc.ok || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s %q: %q, %v", tc.scheme, tc.text, got, err)
		}
	}
}
