package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/proxy/cli/term"
)

func TestHelloHeaders(t *testing.T) {
	got := helloHeaders(http.Header{"X-B": {"1", "2"}, "Postern-Attempt": {"1"}, "Content-Type": {"a\x1bb"}})
	want := "  Content-Type: a?b\n  Postern-Attempt: 1   (added by Postern)\n  X-B: 1, 2\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCurl(t *testing.T) {
	for ingest, want := range map[string]string{
		"127.0.0.1:8089":   `curl -d '{"order":1}' 'http://127.0.0.1:8089/http://r/x?cid=2'`,
		"unix:/run/p.sock": `curl -d '{"order":1}' --unix-socket '/run/p.sock' 'http://localhost/http://r/x?cid=2'`,
	} {
		if got := curl(ingest, "http://r/x?cid=2"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWatching(t *testing.T) {
	if got := watching("127.0.0.1:8090"); got != "http://127.0.0.1:8090/   (the dashboard)" {
		t.Error(got)
	}
	if got := watching("unix:/run/a.sock"); !strings.HasSuffix(got, " top") {
		t.Error(got)
	}
}

func TestHelloReceiver(t *testing.T) {
	var out strings.Builder
	r := &helloReceiver{out: &term.Writer{Writer: &out}, first: make(chan helloRequest, 1)}
	for _, path := range []string{"/postback?cid=1", "/again?cid=2", "/fail?cid=3", "/mend", "/fail?cid=4"} {
		w := httptest.NewRecorder()
		req := httptest.NewRequest("POST", path, strings.NewReader("x"))
		req.Header.Set("Postern-Attempt", "4")
		r.ServeHTTP(w, req)
		if want := map[bool]int{true: 503, false: 200}[path == "/fail?cid=3"]; w.Code != want {
			t.Errorf("%s was answered with %d, want %d", path, w.Code, want)
		}
	}
	if got := <-r.first; got.line != "POST /postback?cid=1" || !strings.Contains(got.headers, "Postern-Attempt: 4") {
		t.Errorf("the first request is %+v", got)
	}
	want := "The receiver got:     POST /again?cid=2 (attempt 4), answered 200\nThe receiver got:     POST /fail?cid=3 (attempt 4), answered 503\n" +
		"The receiver is mended: /fail answers 200 from now on.\nThe receiver got:     POST /fail?cid=4 (attempt 4), answered 200\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
