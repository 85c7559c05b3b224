package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// The body is whole at every attempt, whatever became of the one before.
func TestBodyIsWholeAtEveryRetry(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456", 591) // 4,137 bytes
	r := newReceiver(t, script(status(425), status(503), status(200)))
	r.cut = 1000
	p := startPostern(t, calm)
	id := p.accept("POST", "/"+r.url("/"), body)
	e := p.waitState(id, "delivered", patience)
	for i, want := range []string{"connection", "http_425", "http_503", ""} {
		if len(e.Attempts) != 4 || e.Attempts[i].Error != want || e.Attempts[i].Number != i+1 {
			t.Fatalf("attempts %+v, want number %d to be %q", e.Attempts, i+1, want)
		}
	}
	for i, q := range r.wait(3, patience) {
		if string(q.Body) != body || q.Header.Get("Content-Length") != "4137" {
			t.Errorf("attempt %d: %d bytes, Content-Length %s", i+2, len(q.Body), q.Header.Get("Content-Length"))
		}
	}
}

// A failure with an enormous answer is a failure like any other; the first 1 KiB of it is kept, and shown on request.
func TestEnormousAnswer(t *testing.T) {
	t.Parallel()
	huge := reply{Status: 500, Header: map[string]string{}, Body: strings.Repeat("m", 5<<20)}
	for i := range 60 {
		huge.Header["X-Big-"+string(rune('A'+i%26))+string(rune('a'+i/26))] = strings.Repeat("h", 1000)
	}
	r, failing := newReceiver(t, script(huge, status(200))), newReceiver(t, script(huge))
	p := startPostern(t, calm)
	e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	if len(e.Attempts) != 2 || e.Attempts[0].StatusCode != 500 {
		t.Errorf("attempts %+v", e.Attempts)
	}
	dead := p.waitState(p.accept("POST", "/"+failing.url("/"), "x", "Postern-Max-Attempts: 1"), "dead_letter", patience)
	if kept := p.reveal(dead.ID).Answer; kept.Body != strings.Repeat("m", 1024) || kept.StatusCode != 500 {
		t.Errorf("%d bytes of the answer are kept, want the first 1,024", len(kept.Body))
	}
}

func TestLocationIsKept(t *testing.T) {
	t.Parallel()
	const location = "https://elsewhere.example/login?token=SECRET1"
	r := newReceiver(t, script(reply{Status: 302, Header: map[string]string{"Location": location}}))
	p := startPostern(t, calm)
	id := p.accept("POST", "/"+r.url("/"), "x")
	p.waitState(id, "dead_letter", patience)
	if got := p.reveal(id).Answer.Location; got != location {
		t.Errorf("Location %q, want %q", got, location)
	}
	if shown := p.get("/api/v1/events/" + id); strings.Contains(shown, "elsewhere") || strings.Contains(shown, "SECRET1") {
		t.Errorf("without reveal: %s", shown)
	}
}

// Any method goes through, with and without a body.
func TestMethods(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	for i, c := range []struct{ method, body string }{
		{"HEAD", ""}, {"OPTIONS", ""}, {"DELETE", ""}, {"DELETE", "gone"}, {"PATCH", "p"}, {"PUT", ""}, {"REPORT", "r"}, {"PROPFIND", ""}, {"M-SEARCH", ""},
	} {
		if resp, body := rawRequest(t, p, withBody(c.method, "/"+r.url("/m"), c.body)); resp.StatusCode != 202 {
			t.Fatalf("%s: status %d %s", c.method, resp.StatusCode, body)
		}
		q := r.wait(i+1, patience)[i]
		if q.Line != c.method+" /m HTTP/1.1" || string(q.Body) != c.body {
			t.Errorf("%s: %q with body %q", c.method, q.Line, q.Body)
		}
		if q.Header.Get("Transfer-Encoding") != "" || strings.Contains(strings.ToLower(string(q.Raw)), "chunked") {
			t.Errorf("%s was sent chunked", c.method)
		}
	}
	p.settled(patience)
	if failed := p.metric("postern_attempts_total") - p.metric("postern_attempts_total", "delivered"); failed != 0 {
		t.Errorf("%v attempts failed", failed)
	}
}

// withBody is a request as bytes; one without a body has no Content-Length.
func withBody(method, path, body string) string {
	length := ""
	if body != "" {
		length = "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + length + "Connection: close\r\n\r\n" + body
}

// What is no answer yet does not count as one.
func TestInterimAnswers(t *testing.T) {
	t.Parallel()
	const hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
	p := startPostern(t, calm)
	for name, c := range map[string]struct{ final, state, class, timeout string }{
		"delivers":     {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "delivered", "", "60s"},
		"fails":        {"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "dead_letter", "http_503", "60s"},
		"nothing more": {"", "dead_letter", "timeout", "1s"},
	} {
		r := newReceiver(t, script(reply{Raw: hints + "HTTP/1.1 100 Continue\r\n\r\n" + hints + c.final, Hold: true}))
		e := p.waitState(p.accept("POST", "/"+r.url("/"), "x", "Postern-Max-Attempts: 1", "Postern-Timeout: "+c.timeout), c.state, patience)
		if len(e.Attempts) != 1 || e.Attempts[0].Error != c.class {
			t.Errorf("%s: %+v, want one attempt with class %q", name, e.Attempts, c.class)
		}
	}
}

// A 2xx counts once its headers are in; a rule that needs the body waits for it, within the timeout.
func TestTricklingBody(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nslow", Hold: true}))
	p := startPostern(t, calm+"endpoints:\n  - { name: ruled, url: \""+r.url("/")+"\", success: { body_matches: '^done$' } }\n")
	if e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience); len(e.Attempts) != 1 {
		t.Errorf("without a rule: %+v", e.Attempts)
	}
	e := p.waitState(p.accept("POST", "/to/ruled", "x", "Postern-Max-Attempts: 1", "Postern-Timeout: 1s"), "dead_letter", patience)
	if e.Attempts[0].Error != "timeout" {
		t.Errorf("with a rule: %+v, want timeout", e.Attempts)
	}
}

// An endpoint's own headers replace the application's, and are sent once.
func TestHeadersThatAnEndpointSets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+"endpoints:\n  - { name: keyed, url: \""+r.url("/")+"\", headers: { set: { X-Api-Key: k1, Authorization: Basic abc } } }\n")
	before := time.Now().Unix()
	p.accept("POST", "/to/keyed", "x", "X-Api-Key: mine", "Authorization: Bearer mine", "X-Delivery-Timestamp: 1", "Postern-Attempt: 9")
	q := r.wait(1, patience)[0]
	for name, want := range map[string]string{"X-Api-Key": "k1", "Authorization": "Basic abc", "Postern-Attempt": "1"} {
		if got := q.Header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q once", name, got, want)
		}
	}
	stamp := q.Header["X-Delivery-Timestamp"]
	sent, err := strconv.ParseInt(strings.Join(stamp, ","), 10, 64)
	if err != nil || sent < before || sent > q.At.Unix() {
		t.Errorf("X-Delivery-Timestamp %q, sent between %d and %d", stamp, before, q.At.Unix())
	}
}
