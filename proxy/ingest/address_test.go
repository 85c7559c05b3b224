package ingest_test

import (
	"strings"
	"testing"
)

// Two parameters, plus and percent, double encoding, semicolons, dot segments: whatever the way of naming a target,
// its bytes are kept.
func TestFourWaysKeepTheBytes(t *testing.T) {
	d := open(t)
	for _, rest := range []string{
		"/pb?foo=123&bar=XYZ&bar=2&empty=&flag",
		"/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==",
		"/pb?t=AMP%20Test&u=https%3A%2F%2Fx.io%2F%3Fa%3D1%26b%3D2&lit=%2520",
		"/pb?foo=bar;moo&cid=1",
		"/api/%2F/x//y/../z?u=1",
		"/pb?%zz=%",
		"/./../?",
		"//two?u=http://other.example/",
	} {
		for way, request := range map[string]string{
			"path":    "GET /http://partner.example" + rest + " HTTP/1.1\nHost: HOST",
			"squeeze": "GET /http:/partner.example" + rest + " HTTP/1.1\nHost: HOST",
			"header":  "GET / HTTP/1.1\nHost: HOST\nPostern-Url: http://partner.example" + rest,
			"proxy":   "GET http://partner.example" + rest + " HTTP/1.1\nHost: partner.example",
		} {
			e := d.accepted(request)
			if e.Target != "http://partner.example"+rest || e.Named || e.Endpoint != "http://partner.example" {
				t.Errorf("%s: target %q of %q", way, e.Target, e.Endpoint)
			}
		}
		e := d.accepted("GET /to/partner-a" + rest + " HTTP/1.1\nHost: HOST")
		if e.Target != rest || !e.Named || e.Endpoint != "partner-a" {
			t.Errorf("named: target %q of %q", e.Target, e.Endpoint)
		}
	}
	if d.log.String() != "" {
		t.Errorf("logged: %s", d.log)
	}
}

func TestWaysOfNaming(t *testing.T) {
	d := open(t)
	tests := []struct{ name, request, endpoint, target string }{
		{"capital scheme", "POST /HTTPS://Partner.Example:443/Pb HTTP/1.1\nHost: HOST", "https://partner.example", "HTTPS://Partner.Example:443/Pb"},
		{"capital scheme, squeezed", "POST /HTTPS:/Partner.Example/ HTTP/1.1\nHost: HOST", "https://partner.example", "HTTPS://Partner.Example/"},
		{"user info stays for delivery", "POST /https://u:p@x.example/ HTTP/1.1\nHost: HOST", "https://x.example", "https://u:p@x.example/"},
		{"user info, as a proxy", "POST http://u:p@x.example/ HTTP/1.1\nHost: x.example", "http://x.example", "http://u:p@x.example/"},
		{"no path", "POST /https://x.example HTTP/1.1\nHost: HOST", "https://x.example", "https://x.example"},
		{"IPv6", "POST /http://[2001:db8::1]:8080/x HTTP/1.1\nHost: HOST", "http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080/x"},
		{"https as a proxy", "GET https://x.example/a HTTP/1.1\nHost: x.example", "https://x.example", "https://x.example/a"},
		{"blanks around", "GET / HTTP/1.1\nHost: HOST\nPostern-Url: \t https://x.example/a \t ", "https://x.example", "https://x.example/a"},
		{"asterisk with a header", "OPTIONS * HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/a", "https://x.example", "https://x.example/a"},
		{"named alone", "PUT /to/partner-a HTTP/1.1\nHost: HOST", "partner-a", ""},
		{"named with a query", "PUT /to/partner-a?x=1 HTTP/1.1\nHost: HOST", "partner-a", "?x=1"},
		{"named, encoded", "PUT /to/a%20b/x HTTP/1.1\nHost: HOST", "a b", "/x"},
		{"ours in absolute form, named", "GET http://HOST/to/partner-a/x?y=a+b HTTP/1.1\nHost: HOST", "partner-a", "/x?y=a+b"},
		{"ours in absolute form, URL", "GET http://HOST/https://x.example//a HTTP/1.1\nHost: HOST", "https://x.example", "https://x.example//a"},
		{"ours in absolute form, header", "GET http://HOST HTTP/1.1\nHost: HOST\nPostern-Url: https://x.example/a", "https://x.example", "https://x.example/a"},
		{"another port of localhost", "GET /http://localhost:3000/ HTTP/1.1\nHost: HOST", "http://localhost:3000", "http://localhost:3000/"},
		{"HTTP/1.0 without Host", "GET /https://x.example/ HTTP/1.0", "https://x.example", "https://x.example/"},
		{"any method", "PROPFIND /https://x.example/ HTTP/1.1\nHost: HOST", "https://x.example", "https://x.example/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := d.accepted(tt.request)
			if e.Endpoint != tt.endpoint || e.Target != tt.target {
				t.Errorf("target %q of %q", e.Target, e.Endpoint)
			}
			if method, _, _ := strings.Cut(tt.request, " "); e.Method != method {
				t.Errorf("method %s", e.Method)
			}
		})
	}
}
