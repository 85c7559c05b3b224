package target_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"postern/proxy/target"
)

func TestParse(t *testing.T) {
	tests := []struct{ raw, origin, pathQuery, hostname, port string }{
		{"https://partner.example", "https://partner.example", "/", "partner.example", "443"},
		{"https://partner.example?x=1", "https://partner.example", "/?x=1", "partner.example", "443"},
		{"https://partner.example/?", "https://partner.example", "/?", "partner.example", "443"},
		{"HTTPS://Partner.Example:443/Pb", "https://partner.example", "/Pb", "partner.example", "443"},
		{"http://recv:80/x", "http://recv", "/x", "recv", "80"},
		{"http://recv:443/x", "http://recv:443", "/x", "recv", "443"},
		{"http://recv:/x", "http://recv", "/x", "recv", "80"},
		{"http://recv:08080/x", "http://recv:8080", "/x", "recv", "8080"},
		{"http://[::1]:8080/x", "http://[::1]:8080", "/x", "::1", "8080"},
		{"http://[0:0:0::1]/x", "http://[::1]", "/x", "::1", "80"},
		{"http://[2001:DB8::A]/x", "http://[2001:db8::a]", "/x", "2001:db8::a", "80"},
		{"http://10.0.0.1/x", "http://10.0.0.1", "/x", "10.0.0.1", "80"},
		{"http://u:p@recv/x@y", "http://recv", "/x@y", "recv", "80"},
		{"https://x/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==", "https://x", "/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==", "x", "443"},
		{"https://x/api/%2F/x//y/../z?u=1", "https://x", "/api/%2F/x//y/../z?u=1", "x", "443"},
		{"https://x/%zz?foo=bar;moo&%=%", "https://x", "/%zz?foo=bar;moo&%=%", "x", "443"},
		{`https://x/a"<>\^{|}` + "`'", "https://x", `/a"<>\^{|}` + "`'", "x", "443"},
		{"https://x//double", "https://x", "//double", "x", "443"},
		{"https://x/https://y/?z=http://w", "https://x", "/https://y/?z=http://w", "x", "443"},
	}
	for _, tt := range tests {
		got, err := target.Parse(tt.raw)
		if err != nil {
			t.Errorf("%s: %v", tt.raw, err)
			continue
		}
		if got.Origin() != tt.origin || got.PathQuery != tt.pathQuery || got.Hostname() != tt.hostname || got.Port() != tt.port {
			t.Errorf("%s: origin %s, path and query %s, host %s, port %s", tt.raw, got.Origin(), got.PathQuery, got.Hostname(), got.Port())
		}
		if again, err := target.Parse(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%s: read again as %v, %v", tt.raw, again, err)
		}
	}
}

func TestParts(t *testing.T) {
	got, err := target.Parse("https://u%40x:p%3Aw@partner.example/a/b?c=d?e")
	if err != nil {
		t.Fatal(err)
	}
	if got.User != "u@x" || got.Password != "p:w" || !got.HasUser {
		t.Errorf("user info %q %q %v", got.User, got.Password, got.HasUser)
	}
	if got.Path() != "/a/b" || got.Query() != "c=d?e" || got.WithoutQuery() != "https://partner.example/a/b" {
		t.Errorf("path %q, query %q, shown %q", got.Path(), got.Query(), got.WithoutQuery())
	}
	if plain, _ := target.Parse("https://partner.example/"); plain.HasUser {
		t.Error("user info out of nothing")
	}
}

// TestWithoutQuery: an address is shown as it was written, so that a bare origin is the same endpoint for the fleet as the ad
// hoc one of that origin.
func TestWithoutQuery(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:23013": "http://127.0.0.1:23013", "http://127.0.0.1:23013/": "http://127.0.0.1:23013/",
		"HTTPS://Partner.example:443": "https://partner.example", "https://partner.example?aff=7": "https://partner.example",
		"https://partner.example/?aff=7": "https://partner.example/", "https://partner.example/pb/?x": "https://partner.example/pb/",
	} {
		got, err := target.Parse(raw)
		if err != nil || got.WithoutQuery() != want {
			t.Errorf("%s is shown as %s, %v; want %s", raw, got.WithoutQuery(), err, want)
		}
		if got.PathQuery[0] != '/' {
			t.Errorf("%s: the request line has %q", raw, got.PathQuery)
		}
		if joined, err := got.Join("/pb"); err != nil || !strings.HasSuffix(joined.WithoutQuery(), "/pb") {
			t.Errorf("%s joined with /pb is %s, %v", raw, joined.WithoutQuery(), err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		raw  string
		want error
	}{
		{"", target.ErrEmpty},
		{"partner.example/pb", target.ErrScheme},
		{"/pb", target.ErrScheme},
		{"//partner.example/pb", target.ErrScheme},
		{"ftp://partner.example/", target.ErrScheme},
		{"https:/partner.example/", target.ErrScheme},
		{"javascript:alert(1)", target.ErrScheme},
		{"https://", target.ErrHost},
		{"https:///pb", target.ErrHost},
		{"https://:443/", target.ErrHost},
		{"https://.example/", target.ErrHost},
		{"https://a..b/", target.ErrHost},
		{"https://a%2eb/", target.ErrHost},
		{`https://a\b/`, target.ErrHost},
		{"https://a,b/", target.ErrHost},
		{"https://[::1/", target.ErrHost},
		{"https://[127.0.0.1]/", target.ErrHost},
		{"https://[fe80::1%25eth0]/", target.ErrHost},
		{"https://[]/", target.ErrHost},
		{"https://" + strings.Repeat("a", 255) + "/", target.ErrHost},
		{"https://x:0/", target.ErrPort},
		{"https://x:65536/", target.ErrPort},
		{"https://x:+80/", target.ErrPort},
		{"https://x:8_0/", target.ErrPort},
		{"https://x:http/", target.ErrPort},
		{"https://u%zz@x/", target.ErrUserInfo},
		{"https://u%3Ax:p@x/", target.ErrUserInfo},
		{"https://x/a#b", target.ErrFragment},
		{"https://x/#", target.ErrFragment},
		{"https://x/a b", target.ErrRawByte},
		{" https://x/", target.ErrRawByte},
		{"https://x/ ", target.ErrRawByte},
		{"https://x/?q=é", target.ErrRawByte},
		{"https://münchen.example/", target.ErrHost},
		{"https://u:p@münchen.example/?q=é", target.ErrHost},
		{"https://ü:p@partner.example/", target.ErrRawByte},
		{"https://x/a\r\nHost: y", target.ErrRawByte},
		{"https://x/\x00", target.ErrRawByte},
		{"https://x/\x7f", target.ErrRawByte},
		{"https://x//a%zz", target.ErrOnWire},
		{`https://x//a"b`, target.ErrOnWire},
	}
	for _, tt := range tests {
		if _, err := target.Parse(tt.raw); !errors.Is(err, tt.want) {
			t.Errorf("%q: %v, want: %v", tt.raw, err, tt.want)
		}
	}
}

// What is printed by the way, in logs and errors, must have no secret in it.
func TestNoSecretShows(t *testing.T) {
	for _, raw := range []string{"https://USER1:PASS1@x/PATH1?QUERY1", "https://USER1:PASS1@x:PORT1/PATH1?QUERY1",
		"https://USER1:PASS1@HOST1,/PATH1?QUERY1", "https://USER1%zz:PASS1@x/PATH1", "x://USER1:PASS1@x/PATH1", "https://x/PATH1?QUERY1#FRAG1"} {
		parsed, err := target.Parse(raw)
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "target", parsed)
		shown := fmt.Sprintf("%v %#v %s", err, parsed, log.String())
		for _, secret := range []string{"USER1", "PASS1", "PATH1", "QUERY1", "PORT1", "HOST1", "FRAG1"} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s shows in %s", secret, shown)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://u:p@partner.example:8443/a//b/../%2F?x=a+b%20c&y=;#", "http://[::1]:80//x?", "http://x?//",
		"HTTP://X:080/%zz?%", "https://x//%2f//?a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		parsed, err := target.Parse(raw)
		if err != nil {
			return
		}
		written := parsed.PathQuery
		if !strings.HasSuffix(raw, written) && !strings.HasSuffix(raw, strings.TrimPrefix(written, "/")) {
			t.Fatalf("%q became %q", raw, written)
		}
		again, err := target.Parse(parsed.String())
		if err != nil || again.Origin() != parsed.Origin() || again.PathQuery != written {
			t.Fatalf("%q became %q and then %q, %v", raw, parsed.String(), again.String(), err)
		}
		line, host := onWire(t, parsed)
		if line != "PUT "+written+" HTTP/1.1" || host != parsed.Host {
			t.Fatalf("%q is sent as %q to %q", raw, line, host)
		}
	})
}
