package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/proxy/client"
)

// ingest is what takes one postback for a test: it keeps the request and gives a fixed answer.
type ingest struct {
	*httptest.Server
	answer func(http.ResponseWriter)
	method string
	uri    string
	header http.Header
	body   string
}

func newIngest(t *testing.T, answer func(http.ResponseWriter)) *ingest {
	t.Helper()
	i := &ingest{answer: answer}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		i.method, i.uri, i.header, i.body = r.Method, r.RequestURI, r.Header, string(body)
		i.answer(w)
	}))
	t.Cleanup(i.Close)
	return i
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Postern-Event-Id", "evt_1")
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, `{"id":"evt_1","endpoint":"a","state":"pending","duplicate":false}`)
}

func (i *ingest) send(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return typed{args: append([]string{"send"}, args...), stdin: stdin, env: map[string]string{"POSTERN_INGEST": i.URL}}.run(t)
}

func TestSendArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("from a file\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := newIngest(t, accept)
	for _, c := range []struct {
		name, stdin string
		args        []string
		want        string // method, request target, body
		header      map[string]string
	}{
		{"a URL", "", []string{"https://p.example/pb?cid=a+b%20c"}, "GET / ", map[string]string{"Postern-Url": "https://p.example/pb?cid=a+b%20c", "User-Agent": "Postern/" + Version, "Content-Type": ""}},
		{"a name", "", []string{"--to", "a"}, "GET /to/a ", map[string]string{"Postern-Url": ""}},
		{"a name and more", "", []string{"--to", "a", "/x?y=%2F;z"}, "GET /to/a/x?y=%2F;z ", nil},
		{"data makes a POST", "", []string{"--to", "a", "-d", "x=1"}, "POST /to/a x=1", map[string]string{"Content-Type": "", "Content-Length": "3"}},
		{"unless told otherwise", "", []string{"--to", "a", "-d", "x", "-X", "PUT"}, "PUT /to/a x", nil},
		{"an empty POST", "", []string{"--to", "a", "--method", "POST"}, "POST /to/a ", map[string]string{"Content-Length": "0"}},
		{"empty data", "", []string{"--to", "a", "-d", ""}, "POST /to/a ", map[string]string{"Content-Length": "0"}},
		{"empty data, by its long name", "", []string{"--to", "a", "--data="}, "POST /to/a ", map[string]string{"Content-Length": "0"}},
		{"a file", "", []string{"--to", "a", "-d", "@" + file}, "POST /to/a from a file\x00", nil},
		{"standard input", "typed\n", []string{"--to", "a", "-d", "-"}, "POST /to/a typed\n", nil},
		{"standard input, the other spelling", "typed", []string{"--to", "a", "--data", "@-"}, "POST /to/a typed", nil},
		{"steering", "", []string{"--to", "a", "--event-id", "e1", "--idempotency-key", "k1", "--delay", "90s", "--wait", "1500ms"}, "GET /to/a ",
			map[string]string{"Postern-Event-Id": "e1", "Idempotency-Key": "k1", "Postern-Delay": "1m30s", "Prefer": "wait=2"}},
		{"headers", "", []string{"--to", "a", "-H", "X-A: b, c: d", "-H", "User-Agent:mine", "-H", "content-type:text/plain"}, "GET /to/a ",
			map[string]string{"X-A": "b, c: d", "User-Agent": "mine", "Content-Type": "text/plain"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := i.send(t, c.stdin, c.args...)
			if got.code != 0 || got.stdout != "evt_1: accepted for a, pending\n" {
				t.Errorf("code %d: %s%s", got.code, got.stdout, got.stderr)
			}
			if sent := i.method + " " + i.uri + " " + i.body; sent != c.want {
				t.Errorf("sent %q, want %q", sent, c.want)
			}
			for name, want := range c.header {
				if got := i.header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestSendKeepsRepeatedHeaders(t *testing.T) {
	i := newIngest(t, accept)
	i.send(t, "", "--to", "a", "-H", "X-A: 1", "-H", "x-a: 2")
	if got := i.header["X-A"]; !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("X-A: %q", got)
	}
}

func TestSendPrintsTheAnswer(t *testing.T) {
	problem := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"title":"The spool is full","detail":"try again in a minute"}`)
	}
	waited := func(w http.ResponseWriter) {
		w.Header().Set("Preference-Applied", "wait")
		w.Header().Set("Postern-Event-Id", "evt_2")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "made\n")
	}
	for _, c := range []struct {
		name           string
		answer         func(http.ResponseWriter)
		args           []string
		stdout, stderr string
		code           int
	}{
		{"accepted, as JSON", accept, []string{"--json"}, "{\n  \"id\": \"evt_1\",\n  \"endpoint\": \"a\",\n  \"state\": \"pending\",\n  \"duplicate\": false\n}\n", "", 0},
		{"failed at once", accept, []string{"--wait", "60s"}, "evt_1: accepted for a, pending\n", "The first attempt ended without an answer to print: it failed, or the answer is longer than 64 KiB, or Postern is stopping; see `postern events show evt_1`.\n", 0},
		{"waited for", waited, []string{"--wait", "1s"}, "made\n", "evt_2: delivered, the receiver answered 201\n", 0},
		{"waited for, as JSON", waited, []string{"--wait", "1s", "--json"}, "{\n  \"body\": \"made\\n\",\n  \"id\": \"evt_2\",\n  \"state\": \"delivered\",\n  \"status\": 201\n}\n", "", 0},
		{"refused", problem, nil, "", "postern: The spool is full: try again in a minute (status 503)\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newIngest(t, c.answer).send(t, "", append([]string{"--to", "a"}, c.args...)...)
			if got != (result{c.stdout, c.stderr, c.code}) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestWhyThereIsNoAnswer: what took less than the wait was not kept from its end by the time.
func TestWhyThereIsNoAnswer(t *testing.T) {
	for _, c := range []struct {
		a          client.Accepted
		wait, took time.Duration
		says       string
	}{
		{client.Accepted{}, 3 * time.Second, 40 * time.Millisecond, "The first attempt ended without an answer"},
		{client.Accepted{}, 3 * time.Second, 3 * time.Second, "No first attempt had ended within 3s"},
		{client.Accepted{}, 1500 * time.Millisecond, 1900 * time.Millisecond, "The first attempt ended without an answer"},
		{client.Accepted{}, 1500 * time.Millisecond, 2001 * time.Millisecond, "No first attempt had ended within 2s"},
		{client.Accepted{Duplicate: true}, 3 * time.Second, time.Millisecond, "nothing new is sent"},
	} {
		if got := unanswered(c.a, c.wait, c.took); !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestSendFindsIngestByTheConfiguration: address and token come from the file that run reads.
func TestSendFindsIngestByTheConfiguration(t *testing.T) {
	i := newIngest(t, accept)
	dir := t.TempDir()
	file := filepath.Join(dir, "postern.yaml")
	for path, text := range map[string]string{
		file:                        "listen: " + strings.TrimPrefix(i.URL, "http://") + "\ntoken_file: token\n",
		filepath.Join(dir, "token"): "open-sesame-open-sesame-open-sesame\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := typed{args: []string{"send", "--to", "a", "--config", file}}.run(t)
	if got.code != 0 || i.header.Get("Postern-Token") != "open-sesame-open-sesame-open-sesame" {
		t.Errorf("code %d, token %q: %s", got.code, i.header.Get("Postern-Token"), got.stderr)
	}
	if i.send(t, "", "--to", "a"); i.header.Get("Postern-Token") != "" {
		t.Error("a token was sent where none is named")
	}
	own := filepath.Join(dir, "own")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if i.send(t, "", "--to", "a", "--token-file", own); i.header.Get("Postern-Token") != "mine" {
		t.Errorf("token %q, want that of --token-file", i.header.Get("Postern-Token"))
	}
}

// TestSendRefusesWhatCannotArrive: it is wrong usage, and says so instead of "no Postern answers".
func TestSendRefusesWhatCannotArrive(t *testing.T) {
	i := newIngest(t, accept)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--delay=-5s"}, "--delay must not be negative"},
		{[]string{"--wait=-5s"}, "--wait must be between"},
		{[]string{"-H", "X-A: SEC1\x01"}, "value of the header X-A has a control character"},
		{[]string{"-H", "X A: SEC1"}, "header's name is not valid"},
		{[]string{"-H", "content-length: 3"}, "Content-Length always fits the body"},
		{[]string{"-H", "host: SEC1"}, "Host is always the target's"},
		{[]string{"-H", "Connection: close"}, "Connection belongs to one connection"},
		{[]string{"-H", "transfer-encoding: chunked"}, "Transfer-Encoding belongs to one connection"},
		{[]string{"--event-id", "a\nb"}, "value of the header Postern-Event-Id"},
	} {
		got := i.send(t, "", append([]string{"--to", "a"}, c.args...)...)
		if got.code != 2 || !strings.Contains(got.stderr, c.says) || strings.Contains(got.stderr, "SEC1") || strings.Contains(got.stderr, "answers") {
			t.Errorf("%q: code %d, %q, want %q", c.args, got.code, got.stderr, c.says)
		}
	}
	if i.method != "" {
		t.Errorf("%s %s was sent all the same", i.method, i.uri)
	}
}
