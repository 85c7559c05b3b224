package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/proxy/signing"
)

// captured is a request as somebody saved it, signed at noon.
func captured(t *testing.T, c signing.Config, lineEnd, body string) string {
	t.Helper()
	s, err := signing.New(c)
	if err != nil {
		t.Fatal(err)
	}
	text := "POST /hook?cid=1 HTTP/1.1" + lineEnd + "Host: partner.example" + lineEnd +
		"Postern-Event-Id: evt_1" + lineEnd + "X-Delivery-Timestamp: " + strconv.FormatInt(noon.Unix(), 10) + lineEnd
	for _, field := range s.Sign("evt_1", noon, []byte(body)) {
		text += strings.ToLower(field.Name) + ": " + field.Value + lineEnd
	}
	return text + "Content-Length: " + strconv.Itoa(len(body)) + lineEnd + lineEnd + body
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every scheme, by what is typed, with the clock of the command.
func TestVerifySchemes(t *testing.T) {
	for _, tc := range []struct {
		c    signing.Config
		args []string
	}{
		{signing.Config{Scheme: signing.Standard}, nil},
		{signing.Config{Scheme: signing.Stripe}, nil},
		{signing.Config{Scheme: signing.Stripe, Header: "X-Sig"}, []string{"--sign-header", "x-sig"}},
		{signing.Config{Scheme: signing.Hub}, nil},
		{signing.Config{Scheme: signing.Template, Header: "X-Sig", Template: "v={hex({timestamp}{body})}"}, []string{"--sign-header", "X-Sig", "--sign-template", "v={hex({timestamp}{body})}"}},
	} {
		tc.c.Secrets = [][]byte{[]byte("secret")}
		text := "new\r\nsecret\r\n" // from an editor of another system
		if tc.c.Scheme == signing.Standard {
			text = "bmV3\nwhsec_c2VjcmV0\n"
		}
		args := append([]string{"verify", "--raw", "-", "--scheme", string(tc.c.Scheme), "--secret-file", secretFile(t, text)}, tc.args...)
		for _, lineEnd := range []string{"\r\n", "\n"} {
			got := typed{args: args, stdin: captured(t, tc.c, lineEnd, "a=1\n\xff\x00")}.run(t)
			if got.code != 0 || !strings.Contains(got.stdout, "result     valid\n") || got.stderr != "" {
				t.Errorf("%v: %+v", args, got)
			}
		}
		wrong := strings.Replace(captured(t, tc.c, "\n", "a=1"), "\na=1", "\na=2", 1)
		got := typed{args: append(args, "--json"), stdin: wrong}.run(t)
		var v verdict
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
			t.Fatal(err)
		}
		if got.code != 1 || v.Valid || v.Scheme != string(tc.c.Scheme) || len(v.Checks) != 3 || v.Checks[0].Result != passed || v.Checks[2].Result != failed {
			t.Errorf("%v, another body: %+v", args, got)
		}
	}
}

func TestVerifyFindsALostLineBreak(t *testing.T) {
	c := signing.Config{Scheme: signing.Hub, Secrets: [][]byte{[]byte("secret")}}
	for signed, want := range map[string]string{"x\r\n": "with a line break at its end", "x": "no signature matches"} {
		whole := captured(t, c, "\n", signed)
		head, _, _ := strings.Cut(whole, "Content-Length")
		body := "x"
		if signed == "x" {
			body = "y"
		}
		got := typed{args: []string{"verify", "--raw", "-", "--scheme", "hub", "--secret-file", secretFile(t, "secret")}, stdin: head + "\n" + body}.run(t)
		if got.code != 1 || !strings.Contains(got.stdout, want) {
			t.Errorf("signed %q: %+v", signed, got)
		}
	}
}

func TestParseRaw(t *testing.T) {
	for name, tc := range map[string]struct{ raw, body string }{
		"with a length":        {"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\n", "abc"},
		"without one":          {"POST / HTTP/1.1\r\n\r\nabc\n", "abc\n"},
		"in chunks":            {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"},
		"with no body":         {"GET /?a=b HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		"empty, as said":       {"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n\n", ""},
		"after an empty line":  {"\r\n\nPOST / HTTP/1.0\n\nabc", "abc"},
		"with a body of lines": {"POST / HTTP/1.1\n\na\n\nb", "a\n\nb"},
		"as curl prints it":    {"POST /x HTTP/2\r\nContent-Length: 3\r\n\r\nabc", "abc"},
		"HTTP/2.0":             {"POST /x HTTP/2.0\n\nPOST /x HTTP/2\n", "POST /x HTTP/2\n"},
		"HTTP/3":               {"POST /x HTTP/3\n\nabc", "abc"},
	} {
		got, err := parseRaw([]byte(tc.raw))
		if err != nil || string(got.body) != tc.body || got.broken != "" || got.unread != 0 {
			t.Errorf("%s: %q, %+v, %v", name, got.body, got, err)
		}
	}
	for name, tc := range map[string]struct{ raw, body, broken string }{
		"cut":           {"POST /SECRET HTTP/1.1\nContent-Length: 9\n\nSECRET", "SECRET", "it has 6 bytes, and Content-Length says 9"},
		"all of it":     {"POST /SECRET HTTP/1.1\nContent-Length: 9\n\n", "", "it has 0 bytes, and"},
		"a chunk short": {"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n9\nSECRET", "", "chunks"},
	} {
		if got, err := parseRaw([]byte(tc.raw)); err != nil || string(got.body) != tc.body || !strings.Contains(got.broken, tc.broken) || strings.Contains(got.broken, "SECRET") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for raw, unread := range map[string]int{
		"POST / HTTP/1.1\nContent-Length: 3\n\nabc\n\n":                                           2,
		"POST / HTTP/1.1\nContent-Length: 3\n\nabcd":                                              1,
		"GET / HTTP/1.1\nContent-Length: 0\n\nabcd":                                               4,
		"POST / HTTP/1.1\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nPOST / HTTP/1.1": 15,
	} {
		if got, err := parseRaw([]byte(raw)); err != nil || got.unread != unread {
			t.Errorf("%q: %d bytes behind the body, %v", raw, got.unread, err)
		}
	}
	for name, raw := range map[string]string{
		"nothing":     "",
		"no request":  "SECRET",
		"no headers":  "POST /SECRET HTTP/1.1\nSECRET",
		"HTTP/4":      "POST /SECRET HTTP/4\n\nSECRET",
		"two lengths": "POST / HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\nSECRET",
	} {
		if _, err := parseRaw([]byte(raw)); err == nil || exitCode(err) != exitUsage || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever was captured, there is a verdict or wrong usage.
func FuzzVerifyRaw(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nStripe-Signature: t=1,v1=00\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		request, err := parseRaw(data)
		if err != nil {
			if exitCode(err) != exitUsage {
				t.Fatalf("%v has exit code %d", err, exitCode(err))
			}
			return
		}
		v := &signing.Verifier{Scheme: signing.Stripe, Secrets: [][]byte{[]byte("SECRET")}, Tolerance: time.Minute}
		all, err := inspect(v, request)
		if err != nil || len(all) < 3 || all.valid() {
			t.Fatalf("%+v, %v", all, err)
		}
	})
}

func TestInspectSaysWhatIsNotSetUp(t *testing.T) {
	if _, err := inspect(&signing.Verifier{Scheme: signing.Hub}, received{}); err == nil {
		t.Error("a verifier without secrets has a verdict")
	}
}
