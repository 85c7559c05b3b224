package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Every refusal of the contract's table: problem+json, and nothing spooled.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+"spool: { max_event_bytes: 1KiB }\nendpoints:\n  - { name: known, url: "+r.url("/")+" }\n")
	to := "/" + r.url("/x")
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		says                     string
	}{
		{"no target", "POST", "/", "", nil, 400, "target"},
		{"not http", "POST", "/ftp://partner.example/x", "", nil, 400, "http"},
		{"a word", "POST", "/hello", "", nil, 400, "target"},
		{"two ways", "POST", to, "", []string{"Postern-Url: http://partner.example/"}, 400, "one"},
		{"fragment", "POST", "/", "", []string{"Postern-Url: http://partner.example/#f"}, 400, "fragment"},
		{"blank in header url", "POST", "/", "", []string{"Postern-Url: http://partner.example/a b"}, 400, "encode"},
		{"8-bit in header url", "POST", "/", "", []string{"Postern-Url: http://partner.example/?q=é"}, 400, "encode"},
		{"unknown endpoint", "POST", "/to/nobody/x", "", nil, 404, "nobody"},
		{"bad delay", "POST", to, "", []string{"Postern-Delay: soon"}, 400, "Postern-Delay"},
		{"bad not-before", "POST", to, "", []string{"Postern-Not-Before: tomorrow"}, 400, "Postern-Not-Before"},
		{"bad ttl", "POST", to, "", []string{"Postern-Ttl: -1s"}, 400, "Postern-Ttl"},
		{"too many attempts", "POST", to, "", []string{"Postern-Max-Attempts: 101"}, 400, "Postern-Max-Attempts"},
		{"zero attempts", "POST", to, "", []string{"Postern-Max-Attempts: 0"}, 400, "Postern-Max-Attempts"},
		{"timeout too long", "POST", to, "", []string{"Postern-Timeout: 61s"}, 400, "Postern-Timeout"},
		{"bad event id", "POST", to, "", []string{"Postern-Event-Id: a b"}, 400, "Postern-Event-Id"},
		{"long event id", "POST", to, "", []string{"Postern-Event-Id: " + strings.Repeat("x", 129)}, 400, "Postern-Event-Id"},
		{"body too large", "POST", to, strings.Repeat("x", 1025), nil, 413, "max_event_bytes"},
		{"cross-site page", "POST", to, "", []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
		{"foreign origin", "POST", to, "", []string{"Origin: https://evil.example"}, 403, ""},
		{"null origin", "POST", to, "", []string{"Origin: null"}, 403, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := p.send(c.method, c.path, c.body, c.headers...)
			checkProblem(t, a, c.status, c.says)
		})
	}
	for size, want := range map[int]int{1023: 202, 1024: 202, 1025: 413, 2048: 413} {
		t.Run(fmt.Sprintf("%d bytes in chunks", size), func(t *testing.T) {
			resp, body := rawRequest(t, p, "POST "+to+" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"+
				fmt.Sprintf("200\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", strings.Repeat("x", 0x200), size-0x200, strings.Repeat("x", size-0x200)))
			if resp.StatusCode != want {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, want, body)
			}
		})
	}
	t.Run("foreign host", func(t *testing.T) {
		resp, _ := rawRequest(t, p, "POST "+to+" HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n")
		if resp.StatusCode != 403 {
			t.Errorf("status %d, want 403", resp.StatusCode)
		}
	})
	t.Run("connect", func(t *testing.T) {
		resp, body := rawRequest(t, p, "CONNECT partner.example:443 HTTP/1.1\r\nHost: partner.example:443\r\n\r\n")
		if resp.StatusCode != 405 || !strings.Contains(body, "8089") && !strings.Contains(body, "https://") {
			t.Errorf("status %d: %s", resp.StatusCode, body)
		}
	})
	t.Run("exactly the limit", func(t *testing.T) {
		if a := p.send("POST", to, strings.Repeat("x", 1024)); a.Status != 202 {
			t.Errorf("status %d: %s", a.Status, a.Body)
		}
	})
	p.settled(patience)
	if got := len(r.requests()); got != 3 {
		t.Errorf("receiver got %d requests, want the three that were accepted", got)
	}
}

func checkProblem(t *testing.T, a answer, want int, says string) {
	t.Helper()
	var problem struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal(a.Body, &problem); err != nil {
		t.Fatalf("status %d, not JSON: %s", a.Status, a.Body)
	}
	if a.Status != want || problem.Status != want || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d (%d in the body), content type %q, want %d", a.Status, problem.Status, a.Header.Get("Content-Type"), want)
	}
	if problem.Type == "" || problem.Title == "" || problem.Detail == "" || !strings.Contains(problem.Detail+problem.Title, says) {
		t.Errorf("the problem does not say %q: %+v", says, problem)
	}
}

func TestPrivateTargetsAreRefused(t *testing.T) {
	t.Parallel()
	canary := newReceiver(t, nil)
	p := startPostern(t, "")
	for _, host := range []string{
		canary.addr(), "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "[::1]", "[fe80::1]",
		"[fd00::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "224.0.0.1", "2130706433", "0x7f.1", "127.1", "0177.0.0.1",
	} {
		if a := p.send("POST", "/http://"+host+"/x", ""); a.Status != 403 {
			t.Errorf("%s: status %d, want 403: %s", host, a.Status, a.Body)
		}
	}
	_, port, _ := strings.Cut(canary.addr(), ":")
	for _, host := range []string{
		"127.0.0.1.", "127.65535", "017700000001", "0x7f000001", "0X7F.0.0.1", "00000177.0.0.01", "0", "0x0", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]",
		"[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]", "[::1%25lo]", "１２７.0.0.1", "127。0。0。1", "%31%32%37.0.0.1",
	} {
		a := p.send("POST", "/", "", "Postern-Url: http://"+host+":"+port+"/x")
		if a.Status != 403 && a.Status != 400 {
			t.Errorf("%s: status %d, want 403, or 400 where it is no host: %s", host, a.Status, a.Body)
		}
	}
	if n := canary.mostOpen(); n != 0 {
		t.Errorf("%d connections to the canary", n)
	}
}

func TestNamedEndpointMayBePrivateButNotMetadata(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, fmt.Sprintf("endpoints:\n  - { name: inner, url: %q }\n  - { name: meta, url: \"http://169.254.169.254/\" }\n", r.url("/in")))
	p.accept("POST", "/to/inner", "x")
	r.wait(1, patience)
	a := p.send("POST", "/to/meta", "x")
	if a.Status == 202 {
		e := p.waitState(a.ID, "dead_letter", patience)
		if len(e.Attempts) != 1 || e.Attempts[0].Error != "blocked_address" {
			t.Errorf("attempts: %+v", e.Attempts)
		}
	} else if a.Status != 403 {
		t.Errorf("status %d: %s", a.Status, a.Body)
	}
}

// A name is judged when it is dialled: it is accepted, and no connection is made.
func TestNameOfAPrivateAddressIsBlockedWhenDialled(t *testing.T) {
	canary := newReceiver(t, nil)
	p := startPostern(t, "")
	_, port, _ := strings.Cut(canary.addr(), ":")
	e := p.waitState(p.accept("POST", "/http://localhost:"+port+"/x", ""), "dead_letter", patience)
	if len(e.Attempts) != 1 || e.Attempts[0].Error != "blocked_address" || len(canary.requests()) != 0 {
		t.Errorf("attempts %+v, %d requests", e.Attempts, len(canary.requests()))
	}
}
