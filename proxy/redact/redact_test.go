package redact_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/proxy/redact"
)

func fail[T any](_ T, err error) error { return err }

// Each error as the library makes it, with SECRET wherever it can be, at the top and three levels down.
func TestErrorsHideWhatTheyWereGiven(t *testing.T) {
	var number struct{ N int }
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: errors.New("connect: connection refused")}
	for name, c := range map[string]struct {
		err  error
		want string // a part of what is left
	}{
		"url.Error":          {&url.Error{Op: "Post", URL: "https://SECRET:SECRET@partner.example/SECRET?t=SECRET", Err: refused}, "Post https://partner.example: dial tcp 127.0.0.1:1: connect: connection refused"},
		"url.Error in it":    {&url.Error{Op: "Get", URL: "http://h/", Err: &url.Error{Op: "Get", URL: "http://SECRET@i/SECRET", Err: io.EOF}}, "Get http://h: Get http://i: EOF"},
		"a URL that is none": {fail(url.Parse(strings.Replace("http://h:PORT/?SECRET", "PORT", "SECRET", 1))), "the address cannot be read"},
		"an escape":          {fail(url.PathUnescape("%SECRET")), "url.EscapeError"},
		"dns":                {&net.DNSError{Err: "no such host", Name: "SECRET.example", Server: "SECRET", IsNotFound: true}, "no such host"},
		"dns timeout":        {&net.DNSError{Err: "SECRET", Name: "SECRET.example", IsTimeout: true}, "timeout"},
		"dns otherwise":      {&net.DNSError{Err: "server misbehaving SECRET", Name: "SECRET.example"}, "resolver"},
		"address":            {fail(net.ResolveTCPAddr("tcp", "SECRET:1:2")), "too many colons"},
		"cidr":               {fail2(net.ParseCIDR("SECRET")), "CIDR address"},
		"host name":          {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"SECRET.example"}}, Host: "SECRET"}}, "another host name"},
		"expired":            {x509.CertificateInvalidError{Reason: x509.Expired, Detail: "SECRET"}, "expired"},
		"not a CA":           {x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign, Detail: "SECRET"}, "not valid"},
		"authority":          {x509.UnknownAuthorityError{}, "unknown authority"},
		"header line":        {textproto.ProtocolError("malformed MIME header line: SECRET"), "textproto.ProtocolError"},
		"header":             {fail(http.ParseSetCookie("SECRET")), ""},
		"number":             {fail(strconv.Atoi("SECRET")), "invalid syntax"},
		"json":               {json.Unmarshal([]byte(`{"N":"SECRET"}`), &number), "json.UnmarshalTypeError"},
		"json syntax":        {json.Unmarshal([]byte(`SECRET`), &number), "at byte 1"},
		"time":               {fail(time.Parse(time.RFC3339, "SECRET")), "not a time"},
		"postgres":           {errors.New("dial postgres://SECRET:SECRET@db.internal:5432/x?password=SECRET failed"), "postgres://db.internal:5432/x failed"},
		"keywords":           {errors.New("cannot parse `host=db user=x password=SECRET sslpassword='SE\\'SECRET'`"), "host=db user=x password=***"},
		"a path stays":       {&os.PathError{Op: "open", Path: "/etc/postern.yaml", Err: os.ErrNotExist}, "/etc/postern.yaml"},
		"a deadline":         {context.DeadlineExceeded, "deadline"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("read it: %w", errors.Join(io.ErrUnexpectedEOF, fmt.Errorf("b (%w)", c.err)))} {
			if got := redact.Error(err); strings.Contains(got, "SECRET") || !strings.Contains(got, c.want) || got == "" {
				t.Errorf("%s: %q becomes %q, want %q in it", name, err, got, c.want)
			}
		}
	}
	if got := redact.Error(nil); got != "" {
		t.Errorf("nil shows %q", got)
	}
}

func fail2[T, U any](_ T, _ U, err error) error { return err }

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "",
		"give http://h/p?q#f": "give http://h/p",
		"'https://u:p@h:1/a?b', \"http://x?y\" and (ftp://z@w)": "'https://h:1/a', \"http://x\" and (ftp://w)",
		"http://a:b@[::1]:8080/x?y z":                           "http://[::1]:8080/x z",
		"cid=1&x=2":                                             "cid=1&x=2",
		"PASSWORD = 'a b' x":                                    "PASSWORD=*** x",
		"no :// here":                                           "no :// here",
	} {
		if got := redact.Text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestQueryLetsSingleKeysThrough(t *testing.T) {
	for want, keys := range map[string][]string{"": nil, "cid=a+b&cid=2": {"cid"}, "cid=a+b&cid=2&flag": {"flag", "cid"}} {
		if got := redact.Query("cid=a+b&token=SEC&cid=2&flag&cids=3", keys); got != want {
			t.Errorf("%v shows %q, want %q", keys, got, want)
		}
	}
}

func TestPanic(t *testing.T) {
	defer func() {
		if got := redact.Panic(recover()); !strings.Contains(got, "index out of range") {
			t.Errorf("the runtime's own text became %q", got)
		}
		if got := redact.Panic("SECRET") + redact.Panic(errors.New("SECRET")); strings.Contains(got, "SECRET") {
			t.Errorf("a panic shows %q", got)
		}
	}()
	words, at := []string{"x"}, len(os.Args)+1
	_ = words[at]
}

// A struct, a header, a body, an address: whatever is logged whole shows its type, and what is harmless shows.
func TestLogLines(t *testing.T) {
	u := &url.URL{Scheme: "https", User: url.UserPassword("SECRET", "SECRET"), Host: "partner.example", Path: "/SECRET", RawQuery: "SECRET"}
	h := http.Header{"X-Key": {"SECRET"}, "Cookie": {"SECRET"}}
	for _, format := range []string{"json", "text"} {
		var out strings.Builder
		options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: redact.Attr}
		handler := slog.Handler(slog.NewJSONHandler(&out, options))
		if format == "text" {
			handler = slog.NewTextHandler(&out, options)
		}
		log := slog.New(handler).With("with", &http.Request{URL: u, Header: h}).WithGroup("group")
		log.Debug("see https://SECRET@h/p?SECRET", "u", u, "by value", *u, "h", h, "body", []byte("SECRET"), "err", fmt.Errorf("x: %w", &url.Error{Op: "Get", URL: u.String(), Err: io.EOF}),
			slog.Group("more", "values", u.Query(), "texts", []string{"http://a?SECRET", "plain"}), "resp", struct{ Body string }{"SECRET"},
			"n", 7, "d", time.Second, "t", "text", "none", nil, "map", map[string]string{"a": "SECRET"})
		for _, want := range []string{"https://partner.example", "Cookie, X-Key", "Get https://partner.example: EOF", "http://a", "plain", "([]uint8)", "DEBUG", "text", "see https://h/p"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %s", format, want, out.String())
			}
		}
		if strings.Contains(out.String(), "SECRET") {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"https://u:p@h/a?b#c", "x ://@?", "password='", "a://b@c@d/?", "http://[::1]:1/?q http://x@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := redact.Text(s)
		if again := redact.Text(once); again != once {
			t.Fatalf("%q becomes %q and then %q", s, once, again)
		}
		if got := redact.Text("https://user:pw@host/p?QQQQ" + " " + s); strings.HasPrefix(got, "https://host/p?") {
			t.Fatalf("%q", got)
		}
	})
}
