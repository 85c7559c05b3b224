package client

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzParseAddress: whatever is taken can be asked, and no error repeats what was written as user info.
func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"http://127.0.0.1:8090", ":8090", "unix:/run/p.sock", "[::]:1", "https://u:PW1@h", "h", "0.0.0.0:0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		base, socket, err := parseAddress(address)
		if err != nil {
			if strings.Contains(address, "PW1@") && strings.Contains(err.Error(), "PW1") {
				t.Errorf("%q: the error repeats it: %v", address, err)
			}
			return
		}
		u, err := url.Parse(base + "/api/v1/status")
		if err != nil || u.Host == "" || u.Path != "/api/v1/status" || u.User != nil {
			t.Errorf("%q became %q (%q): %v", address, base, socket, err)
		}
		if strings.HasPrefix(address, "unix:") != (socket != "") {
			t.Errorf("%q became the socket %q", address, socket)
		}
	})
}

// FuzzRefusal: an answer of anybody's making becomes an error that has a text, and never a panic.
func FuzzRefusal(f *testing.F) {
	f.Add(503, "application/problem+json", `{"title":"Full","detail":"wait"}`)
	f.Add(0, "application/problem+json", `{"title":null,"detail":[]}`)
	f.Add(999, "text/html", "<html>")
	f.Fuzz(func(t *testing.T, status int, kind, body string) {
		err := refusal(answer{status: status, header: http.Header{"Content-Type": {kind}}, body: []byte(body)})
		if err.Error() == "" {
			t.Error("an error without a text")
		}
		if !strings.HasPrefix(kind, "application/problem+json") && body != "" && len(body) > 20 && strings.Contains(err.Error(), body) {
			t.Errorf("the error repeats an answer that is no problem document: %v", err)
		}
	})
}
