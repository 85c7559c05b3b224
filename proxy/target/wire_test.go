package target_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"postern/proxy/target"
)

// onWire gives the request line and the Host that net/http writes for a target.
func onWire(t *testing.T, to target.Target) (line, host string) {
	t.Helper()
	u, err := to.URL()
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Method: "PUT", URL: &u, Header: http.Header{"User-Agent": nil}}
	var sent bytes.Buffer
	if err := r.Write(&sent); err != nil {
		t.Fatalf("%#v: %v", to, err)
	}
	line, rest, _ := strings.Cut(sent.String(), "\r\n")
	hostLine, _, _ := strings.Cut(rest, "\r\n")
	return line, strings.TrimPrefix(hostLine, "Host: ")
}

// exchange sends one request through a real http.Transport and gives back the request line that arrived.
func exchange(t *testing.T, u *url.URL) string {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	ours, theirs := net.Pipe()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	lines := make(chan string, 1)
	go func() {
		defer func() { _ = theirs.Close() }()
		in := bufio.NewReader(theirs)
		line, _ := in.ReadString('\n')
		for header := line; header != "\r\n" && header != ""; {
			header, _ = in.ReadString('\n')
		}
		_, _ = io.WriteString(theirs, "HTTP/1.1 204 No Content\r\n\r\n")
		lines <- line
	}()
	resp, err := transport.RoundTrip((&http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return strings.TrimSuffix(<-lines, "\r\n")
}

var asWritten = []string{
	"/",
	"/?",
	"/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==",
	"/x?t=AMP%20Test&u=https%3A%2F%2Fx.io%2F%3Fa%3D1%26b%3D2&lit=%2520",
	"/x?foo=bar;moo&cid=1",
	"/x?foo=123&bar=XYZ&bar=2&empty=&flag",
	"/api/%2F/x//y/../z?u=1",
	"/./../",
	"/%zz?%zz",
	`/a"<>\^{|}?"<>\^{|}`,
	"/*?*",
	"//",
	"//two/slashes//?x=//",
	"//evil.example/",
	"//a%2Fb?",
	"///three",
	"/https://other.example/?x=http://y",
}

func TestTransportKeepsTheBytes(t *testing.T) {
	for _, pathQuery := range asWritten {
		to, err := target.Parse("http://partner.example" + pathQuery)
		if err != nil {
			t.Errorf("%s: %v", pathQuery, err)
			continue
		}
		u, err := to.URL()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := exchange(t, &u), "GET "+pathQuery+" HTTP/1.1"; got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
}

func TestJoin(t *testing.T) {
	tests := []struct{ base, suffix, want string }{
		{"https://x/postback?aff=7", "", "https://x/postback?aff=7"},
		{"https://x/postback?aff=7", "/extra?cid=1", "https://x/postback/extra?aff=7&cid=1"},
		{"https://x/postback?aff=7", "?cid=1", "https://x/postback?aff=7&cid=1"},
		{"https://x/postback?aff=7", "/?cid=1", "https://x/postback/?aff=7&cid=1"},
		{"https://x/postback?aff=7", "/extra", "https://x/postback/extra?aff=7"},
		{"https://x/postback?aff=7", "?", "https://x/postback?aff=7"},
		{"https://x/postback/", "/extra", "https://x/postback/extra"},
		{"https://x/postback/", "//extra", "https://x/postback//extra"},
		{"https://x/postback/", "", "https://x/postback/"},
		{"https://x", "", "https://x/"},
		{"https://x", "/", "https://x/"},
		{"https://x", "/a/%2F/../b?c=a+b%20c;d", "https://x/a/%2F/../b?c=a+b%20c;d"},
		{"https://x/a?", "?", "https://x/a?"},
		{"https://x/a?", "?b", "https://x/a?b"},
		{"https://x/a", "?b?c", "https://x/a?b?c"},
		{"https://x/%zz", "/%zz", "https://x/%zz/%zz"},
	}
	for _, tt := range tests {
		base, err := target.Parse(tt.base)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := base.Join(tt.suffix); err != nil || got.String() != tt.want {
			t.Errorf("%s joined with %q: %v, %v, want %s", tt.base, tt.suffix, got, err, tt.want)
		}
		if base.String() != mustParse(t, tt.base).String() {
			t.Errorf("joining changed %s", tt.base)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	base := mustParse(t, "https://u:PASS1@x")
	for suffix, want := range map[string]error{"extra": target.ErrSuffix, "/a b": target.ErrRawByte, "/a#b": target.ErrFragment,
		"?é": target.ErrRawByte, "//a%zz": target.ErrOnWire, "/\r\n": target.ErrRawByte} {
		_, err := base.Join(suffix)
		if !errors.Is(err, want) || strings.Contains(err.Error(), "PASS1") {
			t.Errorf("%q: %v, want: %v", suffix, err, want)
		}
	}
}

func TestUnder(t *testing.T) {
	tests := []struct {
		to, prefix string
		want       bool
	}{
		{"https://x/a/b?c", "https://x/", true},
		{"https://x/a/b?c", "https://x", true},
		{"https://x/a/b?c", "https://x/a", true},
		{"https://x/a/b?c", "https://x/a/?other", true},
		{"https://x/a?b", "https://x/a/", true},
		{"https://x:443/a", "https://X/a", true},
		{"https://x/ab", "https://x/a", false},
		{"https://x/A", "https://x/a", false},
		{"https://x/", "https://x/a", false},
		{"http://x/a", "https://x/a", false},
		{"https://x:8443/a", "https://x/a", false},
		{"https://y/a", "https://x/a", false},
		{"https://x.y/a", "https://x/", false},
		{"https://u:p@x/a", "https://x/", true},
		// What leads out again lies under the whole origin alone.
		{"https://x/a/../b", "https://x/", true},
		{"https://x/a/../b", "https://x/a", false},
		{"https://x/a/b/../../c", "https://x/a", false},
		{"https://x/a/b/..", "https://x/a", false},
		{"https://x/a/%2e%2E/b", "https://x/a", false},
		{"https://x/a/.%2e/b", "https://x/a", false},
		{"https://x/a/..%2fb", "https://x/a", false},
		{`https://x/a/..\b`, "https://x/a", false},
		{"https://x/a/b%5c..%5cc", "https://x/a", false},
		{"https://x/a/..;v=1/b", "https://x/a", false},
		{"https://x/a/%252e%252e/b", "https://x/a", false},
		{"https://x/a/%zz/../b", "https://x/a", false},
		{"https://x/a/...", "https://x/a", true},
		{"https://x/a/b..c/./.d?e=/../", "https://x/a", true},
		{"https://x/a/100%25/x.y", "https://x/a", true},
	}
	for _, tt := range tests {
		if got := mustParse(t, tt.to).Under(mustParse(t, tt.prefix)); got != tt.want {
			t.Errorf("%s under %s: %v", tt.to, tt.prefix, got)
		}
	}
}

func FuzzJoin(f *testing.F) {
	f.Add("https://x/postback?aff=7", "/extra?cid=1")
	f.Add("https://x//a/?", "?")
	f.Fuzz(func(t *testing.T, rawBase, suffix string) {
		base, err := target.Parse(rawBase)
		if err != nil {
			return
		}
		joined, err := base.Join(suffix)
		if err != nil {
			return
		}
		path, query, _ := strings.Cut(suffix, "?")
		if joined.Origin() != base.Origin() || !strings.HasSuffix(joined.Path(), path) || !strings.HasSuffix(joined.Query(), query) {
			t.Fatalf("%q joined with %q gave %q", rawBase, suffix, joined.String())
		}
		if path == "" && joined.Path() != base.Path() || !strings.HasPrefix(joined.Query(), base.Query()) {
			t.Fatalf("%q lost something when joined with %q: %q", rawBase, suffix, joined.String())
		}
		if line, _ := onWire(t, joined); line != "PUT "+joined.PathQuery+" HTTP/1.1" {
			t.Fatalf("%q is sent as %q", joined.PathQuery, line)
		}
	})
}

func mustParse(t *testing.T, raw string) target.Target {
	t.Helper()
	parsed, err := target.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return parsed
}
