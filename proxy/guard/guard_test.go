package guard_test

import (
	"bufio"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"postern/proxy/guard"
)

// request parses what a client would send, so that Host and RequestURI are what the server sees.
func request(t *testing.T, line string, headers ...string) *http.Request {
	t.Helper()
	raw := line + "\r\n" + strings.Join(append(headers, "", ""), "\r\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	return r
}

// status is what the guard answers; 0 means that the request may go on.
func status(g *guard.Guard, r *http.Request) int {
	if p := g.Check(r); p != nil {
		return p.Status
	}
	return 0
}

func TestHost(t *testing.T) {
	loopback := guard.New(guard.Config{Listen: []string{"127.0.0.1:8089"}})
	other := guard.New(guard.Config{Listen: []string{"127.0.0.9:8089", "Sidecar.Internal:8089", "2001:db8::1", "[2001:db8::2]:80", "0.0.0.0:8089"}})
	anyHost := guard.New(guard.Config{AnyHost: true})
	tests := []struct {
		host  string
		guard *guard.Guard
		want  int
	}{
		{"localhost:8089", loopback, 0},
		{"localhost", loopback, 0},
		{"LOCALHOST:1", loopback, 0},
		{"localhost.:8089", loopback, 0},
		{"127.0.0.1:8089", loopback, 0},
		{"127.0.0.1", loopback, 0},
		{"[::1]:8089", loopback, 0},
		{"[0:0::1]", loopback, 0},
		{"[::ffff:127.0.0.1]:8089", loopback, 0},
		{"127.0.0.2:8089", loopback, 403},
		{"evil.example:8089", loopback, 403},
		{"localhost.evil.example", loopback, 403},
		{"evil.localhost", loopback, 403},
		{"127.0.0.1.evil.example", loopback, 403},
		{"localhost:80:80", loopback, 403},
		{"localhost:x", loopback, 403},
		{"user@localhost", loopback, 403},
		{"[::1", loopback, 403},
		{"[::2]", loopback, 403},
		{"[127.0.0.1]", loopback, 403},
		{"0.0.0.0:8089", loopback, 403},
		{"127.0.0.9", other, 0},
		{"sidecar.internal:1", other, 0},
		{"[2001:db8::1]:8089", other, 0},
		{"[2001:db8:0::2]:8089", other, 0},
		{"localhost", other, 0},
		{"0.0.0.0:8089", other, 403},
		{"[2001:db8::3]", other, 403},
		{"10.4.3.2:9464", anyHost, 0},
		{"whatever.example", anyHost, 0},
	}
	for _, tt := range tests {
		r := request(t, "GET / HTTP/1.1", "Host: "+tt.host)
		if got := status(tt.guard, r); got != tt.want {
			t.Errorf("Host %s: %d, want %d", tt.host, got, tt.want)
		}
	}
	if got := status(loopback, request(t, "GET / HTTP/1.0")); got != 0 {
		t.Errorf("HTTP/1.0 without a Host: %d", got)
	}
}

func TestPages(t *testing.T) {
	loopback := guard.New(guard.Config{Listen: []string{"127.0.0.1:8090"}})
	anyHost := guard.New(guard.Config{AnyHost: true})
	tests := []struct {
		name    string
		guard   *guard.Guard
		headers []string
		want    int
	}{
		{"own page", loopback, []string{"Host: localhost:8090", "Origin: http://localhost:8090", "Sec-Fetch-Site: same-origin"}, 0},
		{"another port of localhost", loopback, []string{"Host: localhost:8090", "Origin: http://127.0.0.1:3000", "Sec-Fetch-Site: same-site"}, 0},
		{"typed by a person", loopback, []string{"Host: localhost", "Sec-Fetch-Site: none"}, 0},
		{"foreign page", loopback, []string{"Host: localhost", "Origin: https://evil.example"}, 403},
		{"foreign page, same site", loopback, []string{"Host: localhost", "Origin: http://evil.localhost", "Sec-Fetch-Site: same-site"}, 403},
		{"sandboxed frame", loopback, []string{"Host: localhost", "Origin: null"}, 403},
		{"empty origin", loopback, []string{"Host: localhost", "Origin:"}, 403},
		{"extension", loopback, []string{"Host: localhost", "Origin: chrome-extension://localhost"}, 403},
		{"two origins, one foreign", loopback, []string{"Host: localhost", "Origin: http://localhost", "Origin: http://evil.example"}, 403},
		{"a list of origins", loopback, []string{"Host: localhost", "Origin: http://localhost http://evil.example"}, 403},
		{"image on a foreign page", loopback, []string{"Host: localhost", "Sec-Fetch-Site: cross-site"}, 403},
		{"in capitals", loopback, []string{"Host: localhost", "Sec-Fetch-Site: Cross-Site"}, 403},
		{"twice", loopback, []string{"Host: localhost", "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"}, 403},
		{"any host, own page", anyHost, []string{"Host: postern.internal:8090", "Origin: https://postern.internal"}, 0},
		{"any host, foreign page", anyHost, []string{"Host: postern.internal", "Origin: https://evil.example"}, 403},
		{"any host, null", anyHost, []string{"Host: postern.internal", "Origin: null"}, 403},
		{"any host, odd origin", anyHost, []string{"Host: postern.internal", "Origin: https://postern.internal/x"}, 403},
		{"any host, cross-site", anyHost, []string{"Host: postern.internal", "Sec-Fetch-Site: cross-site"}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, "POST /https://partner.example/ HTTP/1.1", tt.headers...)
			if got := status(tt.guard, r); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}

func TestFormsOfTheRequest(t *testing.T) {
	g := guard.New(guard.Config{Listen: []string{"127.0.0.1:8089"}})
	forward := request(t, "GET http://partner.example/pb HTTP/1.1", "Host: partner.example", "Origin: https://shop.example")
	if got := status(g, forward); got != 0 {
		t.Errorf("absolute form: %d", got)
	}
	if p := g.CheckPage(forward); p == nil || p.Status != 403 {
		t.Errorf("CheckPage looks at every form: %v", p)
	}
	if got := status(g, request(t, "OPTIONS * HTTP/1.1", "Host: evil.example")); got != 403 {
		t.Errorf("asterisk form: %d", got)
	}
	if got := status(g, request(t, "GET //evil.example/ HTTP/1.1", "Host: evil.example")); got != 403 {
		t.Errorf("two slashes are still the origin form: %d", got)
	}
}

// TestHostsOfOthers: names that lead here by way of somebody else's DNS, and spellings that some reader might take for ours.
func TestHostsOfOthers(t *testing.T) {
	g := guard.New(guard.Config{Listen: []string{"127.0.0.1:8089"}})
	for _, host := range []string{
		"127.0.0.1.nip.io", "localtest.me", "rebind.evil.example:8089", "localhost.localdomain", "localhost..", "127.0.0.1..", "127.1", "2130706433", "0x7f.1",
		"0177.0.0.1", "127.0.0.01", "::1", "[::1]x", "[::1]:80:80", "[::1%25lo]", "[::1%lo]", "[::1.evil.example]", "a@localhost", "a:b@localhost:8089",
		"localhost@evil.example", "localhost/", "localhost\\@evil.example", "localhost:80#", "localhost:80?", "localhost,evil.example", "localhost evil.example",
		"localhost\tevil", "%6cocalhost", "ⓛocalhost", "127。0。0。1", "１２７.0.0.1", "[::ffff:127.0.0.2]", "[fe80::1]", "0", "[::]",
	} {
		r := &http.Request{Method: "GET", Host: host, RequestURI: "/", Header: http.Header{}}
		if got := status(g, r); got != 403 {
			t.Errorf("Host %q: %d", host, got)
		}
		if got := status(g, &http.Request{Method: "POST", Host: "localhost", RequestURI: "/", Header: http.Header{"Origin": {"http://" + host}}}); got != 403 {
			t.Errorf("Origin of %q: %d", host, got)
		}
	}
}

// FuzzHost: what passes is localhost or its address, however it is written.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"localhost:8089", "LOCALHOST.", "[::1]:1", "[::ffff:7f00:1]", "127.0.0.1:", "a@localhost", "[::1]x", "localhost:80:80", ":80", "[]"} {
		f.Add(seed)
	}
	g := guard.New(guard.Config{Listen: []string{"127.0.0.1:8089"}})
	f.Fuzz(func(t *testing.T, host string) {
		if host == "" || status(g, &http.Request{Method: "GET", Host: host, RequestURI: "/", Header: http.Header{}}) != 0 {
			return
		}
		u, err := url.Parse("http://" + host + "/")
		if err != nil || u.User != nil || u.Path != "/" {
			t.Fatalf("%q passes and is no host: %v, %v", host, u, err)
		}
		name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		addr, err := netip.ParseAddr(name)
		if name != "localhost" && (err != nil || !addr.Unmap().IsLoopback()) {
			t.Errorf("%q passes", host)
		}
	})
}
