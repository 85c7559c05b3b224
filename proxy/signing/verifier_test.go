package signing

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// schemes are one configuration for each way of signing.
var schemes = []Config{
	{Scheme: Standard},
	{Scheme: Stripe},
	{Scheme: Stripe, Header: "X-Own"},
	{Scheme: Hub},
	{Scheme: Template, Header: "X-Own", Template: "ts={timestamp};sig={base64({id}|{timestamp}|{body}!)}"},
}

func (c Config) name() string { return string(c.Scheme) + c.Header }

var (
	secret = []byte("SECRET")
	moment = time.Unix(1_700_000_000, 0)
	body   = []byte("{\"amount\": 1.50}\r\n")
)

func (c Config) verifier() Verifier {
	return Verifier{Scheme: c.Scheme, Header: c.Header, Template: c.Template, Secrets: [][]byte{secret}, Now: func() time.Time { return moment }}
}

func (c Config) signs(t testing.TB) http.Header {
	t.Helper()
	c.Secrets = [][]byte{secret}
	return signed(t, c, "evt_1", moment, body)
}

func TestWhatWasNotSigned(t *testing.T) {
	for _, c := range schemes {
		t.Run(c.name(), func(t *testing.T) {
			v, h := c.verifier(), c.signs(t)
			if err := v.Verify(h, body); err != nil {
				t.Fatalf("the original: %v", err)
			}
			for name, changed := range map[string][]byte{
				"reformatted": []byte("{\"amount\":1.50}\r\n"), "cut": body[:len(body)-2], "longer": append(slices.Clone(body), ' '), "empty": nil,
			} {
				if err := v.Verify(h, changed); !errors.Is(err, ErrNoMatch) {
					t.Errorf("%s body: %v", name, err)
				}
			}
			v.Secrets = [][]byte{[]byte("SECRET "), []byte("secret")}
			if err := v.Verify(h, body); !errors.Is(err, ErrNoMatch) {
				t.Errorf("other secrets: %v", err)
			}
		})
	}
}

// Every single bit of a signature counts, and so do ID and timestamp where they are signed.
func TestEveryByteCounts(t *testing.T) {
	for _, c := range schemes {
		t.Run(c.name(), func(t *testing.T) {
			v, original := c.verifier(), c.signs(t)
			v.Tolerance = 200 * 365 * 24 * time.Hour
			for _, name := range c.Scheme.Headers(c.Header) {
				for i := range original.Get(name) {
					h := original.Clone()
					changed := []byte(h.Get(name))
					changed[i] ^= 1
					h.Set(name, string(changed))
					if err := v.Verify(h, body); err == nil {
						t.Errorf("%s is accepted as %q", name, changed)
					}
				}
			}
		})
	}
}

func TestHeadersThatAreNotThere(t *testing.T) {
	for _, c := range schemes {
		for _, name := range c.Scheme.Headers(c.Header) {
			v, h := c.verifier(), c.signs(t)
			value := h.Get(name)
			for how, change := range map[string]func(){
				"absent": func() { h.Del(name) },
				"empty":  func() { h.Set(name, "") },
			} {
				change()
				if err := v.Verify(h, body); !errors.Is(err, ErrMissingHeader) || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %s %s: %v", c.name(), name, how, err)
				}
			}
			h[name] = []string{value, value}
			if err := v.Verify(h, body); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %s twice: %v", c.name(), name, err)
			}
		}
	}
}

func TestTolerance(t *testing.T) {
	second := time.Second
	for _, tc := range []struct {
		off, tolerance time.Duration
		want           error
	}{
		{0, 0, nil},
		{DefaultTolerance, 0, nil},
		{-DefaultTolerance, 0, nil},
		{DefaultTolerance + 1, 0, ErrTooOld},
		{-DefaultTolerance - 1, 0, ErrTooNew},
		{5 * second, 5 * second, nil},
		{6 * second, 5 * second, ErrTooOld},
		{-6 * second, 5 * second, ErrTooNew},
		{1<<63 - 1, time.Hour, ErrTooOld},
		{0, -1, ErrTooNew}, // accepts none
	} {
		for _, c := range schemes {
			v, h := c.verifier(), c.signs(t)
			v.Tolerance, v.Now = tc.tolerance, func() time.Time { return moment.Add(tc.off) }
			err := v.Verify(h, body)
			if c.Scheme == Hub {
				if err != nil {
					t.Errorf("hub has no timestamp, and says %v", err)
				}
				continue
			}
			late, isTime := errors.AsType[*TimestampError](err)
			if tc.tolerance < 0 {
				if err == nil {
					t.Errorf("%s: a negative tolerance accepts", c.name())
				}
				continue
			}
			if !errors.Is(err, tc.want) || isTime != (tc.want != nil) || isTime && !late.At.Equal(moment) {
				t.Errorf("%s: %v off with %v tolerated: %v, want %v", c.name(), tc.off, tc.tolerance, err, tc.want)
			}
		}
	}
}

// Without a clock and a tolerance of its own, a verifier uses the real one and five minutes.
func TestDefaults(t *testing.T) {
	c := Config{Scheme: Standard, Secrets: [][]byte{secret}}
	v := Verifier{Scheme: Standard, Secrets: c.Secrets}
	if err := v.Verify(signed(t, c, "evt_1", time.Now(), body), body); err != nil {
		t.Error(err)
	}
	if err := v.Verify(signed(t, c, "evt_1", time.Now().Add(-6*time.Minute), body), body); !errors.Is(err, ErrTooOld) {
		t.Error(err)
	}
	if err := v.Verify(signed(t, c, "evt_1", time.Now().Add(6*time.Minute), body), body); !errors.Is(err, ErrTooNew) {
		t.Error(err)
	}
}

func TestMalformed(t *testing.T) {
	standardOf := func(id, at, signature string) http.Header {
		return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}}
	}
	stripeOf := func(value string) http.Header { return http.Header{"Stripe-Signature": {value}} }
	hubOf := func(value string) http.Header { return http.Header{"X-Hub-Signature-256": {value}} }
	const now = "1700000000"
	for _, tc := range []struct {
		scheme Scheme
		header http.Header
		want   error
	}{
		{Standard, standardOf("evt_1", now, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), ErrMalformed},
		{Standard, standardOf("evt_1", now, "v1a,AAAA v2,AAAA"), ErrMalformed},
		{Standard, standardOf("evt_1", now, "v1"), ErrNoMatch},
		{Standard, standardOf("evt_1", now, "v1,"), ErrNoMatch},
		{Standard, standardOf("evt_1", now, "v1,not base64 v1,AAAA"), ErrNoMatch},
		{Standard, standardOf("evt_1", now+".0", "v1,AAAA"), ErrMalformed},
		{Standard, standardOf("evt_1", "+"+now, "v1,AAAA"), ErrMalformed},
		{Standard, standardOf("evt_1", "-"+now, "v1,AAAA"), ErrMalformed},
		{Standard, standardOf("evt_1", " "+now, "v1,AAAA"), ErrMalformed},
		{Standard, standardOf("evt_1", "2023-11-14T22:13:20Z", "v1,AAAA"), ErrMalformed},
		{Standard, standardOf("evt_1", "1700000000000", "v1,AAAA"), ErrMalformed}, // milliseconds
		{Standard, standardOf("evt_1", "99999999999999999999", "v1,AAAA"), ErrMalformed},
		{Stripe, stripeOf("v1=00"), ErrMalformed},
		{Stripe, stripeOf("t=" + now), ErrMalformed},
		{Stripe, stripeOf("t=" + now + ",v0=00"), ErrMalformed},
		{Stripe, stripeOf("t=" + now + ",t=" + now + ",v1=00"), ErrMalformed},
		{Stripe, stripeOf("t=now,v1=00"), ErrMalformed},
		{Stripe, stripeOf("t=" + now + ", v1=zz,v1=00,v1"), ErrNoMatch},
		{Hub, hubOf("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"), ErrMalformed},
		{Hub, hubOf("sha1=00"), ErrMalformed},
		{Hub, hubOf("sha256=0"), ErrMalformed},
		{Hub, hubOf("sha256="), ErrNoMatch},
	} {
		v := Config{Scheme: tc.scheme}.verifier()
		if err := v.Verify(tc.header, body); !errors.Is(err, tc.want) {
			t.Errorf("%s %v: %v, want %v", tc.scheme, tc.header, err, tc.want)
		}
	}
}

// Base64 has several spellings of the last bytes; only the one that the sender wrote counts, as for the libraries that
// compare text.
func TestSignatureHasOneSpelling(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	c := Config{Scheme: Standard}
	v, h := c.verifier(), c.signs(t)
	value := h.Get("Webhook-Signature")
	last := len(value) - 2 // before the =
	for _, other := range alphabet {
		if byte(other) == value[last] {
			continue
		}
		h.Set("Webhook-Signature", value[:last]+string(other)+"=")
		if err := v.Verify(h, body); !errors.Is(err, ErrNoMatch) {
			t.Errorf("with %c at the end: %v", other, err)
		}
	}
}

// A timestamp counts as it is written: another way of writing the same number is another text.
func TestTimestampIsSignedAsWritten(t *testing.T) {
	c := Config{Scheme: Standard}
	v, h := c.verifier(), c.signs(t)
	h.Set("Webhook-Timestamp", "0"+strconv.FormatInt(moment.Unix(), 10))
	if err := v.Verify(h, body); !errors.Is(err, ErrNoMatch) {
		t.Errorf("with a leading zero: %v", err)
	}
}

// Whatever the request, a verifier does not panic, accepts nothing that the secret did not sign, and tells nothing of
// the secret, the headers or the body.
func FuzzVerify(f *testing.F) {
	f.Add("evt_1", "1700000000", "v1,AAAA v1,BBBB", "body")
	f.Add("evt_1", "1700000000", "t=1700000000,v1=00,v1=11", "body")
	f.Add("evt_1", "1700000000", "sha256=00", "body")
	f.Add("", "99999999999999999999", "ts=1;sig=", "")
	for _, c := range schemes {
		h := c.signs(f)
		f.Add("evt_1", "1700000000", h.Get(c.Scheme.Headers(c.Header)[max(0, len(c.Scheme.Headers(c.Header))-1)]), string(body))
	}
	f.Fuzz(func(t *testing.T, id, at, value, text string) {
		for _, c := range schemes {
			h := http.Header{headerID: {id}, headerTimestamp: {at}, headerEventID: {id}, headerDelivery: {at}}
			names := c.Scheme.Headers(c.Header)
			h.Set(names[len(names)-1], value)
			v := c.verifier()
			err := v.Verify(h, []byte(text))
			switch {
			case err == nil:
				if id != "evt_1" && c.Scheme == Standard || text != string(body) {
					t.Fatalf("%s: forged: id %q, at %q, %q, body %q", c.name(), id, at, value, text)
				}
			case strings.Contains(err.Error(), "SECRET") && !strings.Contains(value, "SECRET"):
				t.Fatalf("%s: the error tells the secret: %v", c.name(), err)
			case len(value) > 40 && strings.Contains(err.Error(), value), len(text) > 40 && strings.Contains(err.Error(), text):
				t.Fatalf("%s: the error tells what was sent: %v", c.name(), err)
			case !errors.Is(err, ErrMissingHeader) && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooOld) && !errors.Is(err, ErrTooNew) && !errors.Is(err, ErrNoMatch):
				t.Fatalf("%s: an error of no kind: %v", c.name(), err)
			}
		}
	})
}
