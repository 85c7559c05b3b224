package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What goes in comes out: cases of the field, each named by what somebody's system did to it.

func TestBodyBytes(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"odd JSON":   "{ \"a\" :1,\"a\":2 , \"n\":9223372036854775807, \"u\":\"\\u0026\"}\r\n",
		"not text":   "\xff\xfe\x00",
		"one byte":   "x",
		"4137 bytes": strings.Repeat("0123456", 591),
	}
	p := startPostern(t, calm)
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, script(status(500), status(200)))
			p.accept("POST", "/"+r.url("/pb"), body, "Content-Type: application/json")
			for i, q := range r.wait(2, patience) {
				if string(q.Body) != body {
					t.Errorf("attempt %d: body %q, want %q", i+1, q.Body, body)
				}
				if got := q.Header.Get("Content-Length"); got != fmt.Sprint(len(body)) {
					t.Errorf("attempt %d: Content-Length %q, want %d", i+1, got, len(body))
				}
				if got := q.Header.Get("Postern-Attempt"); got != fmt.Sprint(i+1) {
					t.Errorf("Postern-Attempt %q, want %d", got, i+1)
				}
			}
		})
	}
}

// targets are paths and queries that somebody's proxy has changed on the way.
var targets = []string{
	"/pb?cid=a+b%20c%2Bd&sig=Zm9v+YmFy/w==",
	"/pb?t=AMP%20Test&u=https%3A%2F%2Fx.io%2F%3Fa%3D1%26b%3D2&lit=%2520",
	"/pb?foo=bar;moo&cid=1",
	"/pb?foo=123&bar=XYZ&bar=2&empty=&flag",
	"/api/%2F/x//y/../z?u=1",
	"/a/./b/../c",
	"//two//slashes?x=//",
	"/?",
	"/pb?",
	"/%7Euser/%41?%zz=1",
	"/pb?q=https://other.example/a?b=c&d='x'\"<>|{}^`\\",
	"/",
}

func TestTargetBytesByEachWay(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner-a, url: %q }\n", "http://"+r.addr()))
	ways := map[string]func(tail string){
		"url after the slash": func(tail string) { p.accept("GET", "/http://"+r.addr()+tail, "") },
		"squeezed slashes":    func(tail string) { p.accept("GET", "/http:/"+r.addr()+tail, "") },
		"header":              func(tail string) { p.accept("GET", "/", "", "Postern-Url: http://"+r.addr()+tail) },
		"named endpoint":      func(tail string) { p.accept("GET", "/to/partner-a"+tail, "") },
		"forward proxy":       func(tail string) { proxied(t, p, "http://"+r.addr()+tail) },
	}
	n := 0
	for name, way := range ways {
		for _, tail := range targets {
			way(tail)
			n++
			got := r.wait(n, patience)
			if want := "GET " + tail + " HTTP/1.1"; got[n-1].Line != want {
				t.Errorf("%s: request line %q, want %q", name, got[n-1].Line, want)
			}
			if got[n-1].Host != r.addr() {
				t.Errorf("%s: Host %q, want %q", name, got[n-1].Host, r.addr())
			}
		}
	}
	for _, tail := range targets {
		if strings.Contains(p.log.String(), tail) && len(tail) > 4 {
			t.Errorf("the log shows %q", tail)
		}
	}
}

// proxied sends an absolute-form request, as a client does that has http_proxy set.
func proxied(t *testing.T, p *postern, url string) {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	host = host[:strings.IndexAny(host, "/?")]
	resp, body := rawRequest(t, p, "GET "+url+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != 202 {
		t.Fatalf("absolute form: status %d: %s", resp.StatusCode, body)
	}
}

// rawRequest writes bytes to the ingest port and reads one answer.
func rawRequest(t *testing.T, p *postern, raw string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(p.ingest, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, raw)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer to %.60q: %v", raw, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

func TestFormBodiesSteerNothing(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	const body = "a=1&url=http://evil&b=%zz"
	for i, method := range []string{"POST", "PUT", "PATCH"} {
		p.accept(method, "/"+r.url("/form"), body, "Content-Type: application/x-www-form-urlencoded")
		q := r.wait(i+1, patience)[i]
		if string(q.Body) != body || !strings.HasPrefix(q.Line, method+" /form ") {
			t.Errorf("%s: got %q with body %q", method, q.Line, q.Body)
		}
	}
}

func TestEmptyPostAndGet(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(_ int, q request) reply {
		if q.Header.Get("Transfer-Encoding") != "" || strings.Contains(string(q.Raw), "chunked") {
			return status(411)
		}
		return status(200)
	})
	p := startPostern(t, calm)
	p.accept("POST", "/"+r.url("/empty"), "")
	q := r.wait(1, patience)[0]
	if got := q.Header["Content-Length"]; len(got) != 1 || got[0] != "0" {
		t.Errorf("empty POST: Content-Length %q, want 0", got)
	}
	p.accept("GET", "/"+r.url("/get"), "")
	q = r.wait(2, patience)[1]
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Accept-Encoding"} {
		if _, ok := q.Header[name]; ok {
			t.Errorf("GET was sent with %s", name)
		}
	}
}

func TestHeadersPassOrStay(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	raw := "POST /" + r.url("/h") + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n" +
		"Authorization: Bearer app\r\nUser-Agent: app/1\r\nX-Two: a\r\nX-Two: b\r\nIdempotency-Key: k-1\r\n" +
		"Connection: close, X-Hop\r\nX-Hop: gone\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: gone\r\nTE: trailers\r\n" +
		"X-Forwarded-For: 10.1.1.1\r\nForwarded: for=x\r\nVia: 1.1 x\r\nPostern-Ttl: 1h\r\nPrefer: wait=0, respond-async\r\n\r\nhi"
	if resp, body := rawRequest(t, p, raw); resp.StatusCode != 202 && resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	q := r.wait(1, patience)[0]
	for name, want := range map[string]string{
		"Authorization": "Bearer app", "User-Agent": "app/1", "Idempotency-Key": "k-1", "Prefer": "respond-async",
	} {
		if got := q.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := q.Header["X-Two"]; len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("X-Two: %q", got)
	}
	for _, name := range []string{"X-Hop", "Keep-Alive", "Proxy-Authorization", "Te", "X-Forwarded-For", "Forwarded", "Via",
		"Postern-Ttl", "Accept-Encoding", "Expect"} {
		if got, ok := q.Header[name]; ok {
			t.Errorf("%s was passed on: %q", name, got)
		}
	}
	if q.Header.Get("X-Delivery-Timestamp") == "" || !strings.HasPrefix(q.eventID(), "evt_") {
		t.Errorf("Postern's own headers are missing: %v", q.Header)
	}
}

func TestUserAgentWhereNoneWasSent(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	rawRequest(t, p, "GET /"+r.url("/ua")+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if got := r.wait(1, patience)[0].Header.Get("User-Agent"); !strings.HasPrefix(got, "Postern/") {
		t.Errorf("User-Agent %q, want Postern/VERSION", got)
	}
}

func TestUserInfoBecomesBasicAuthorization(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	p.accept("GET", "/http://us%20er:p%3Aw@"+r.addr()+"/x", "")
	q := r.wait(1, patience)[0]
	if user, password, ok := (&http.Request{Header: q.Header}).BasicAuth(); !ok || user != "us er" || password != "p:w" {
		t.Errorf("got %q %q %v", user, password, ok)
	}
	p.accept("GET", "/http://u:p@"+r.addr()+"/x", "", "Authorization: Bearer mine")
	if got := r.wait(2, patience)[1].Header.Get("Authorization"); got != "Bearer mine" {
		t.Errorf("the application's own Authorization became %q", got)
	}
}
