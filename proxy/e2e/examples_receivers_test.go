package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/signing"
)

// receivers are the examples of the other end, beside receiver-go, which has tests of its own.
var receivers = []struct {
	name    string
	command func(t *testing.T, addr string) *exec.Cmd
}{
	{"python", func(t *testing.T, addr string) *exec.Cmd {
		return exec.Command(program(t, "python3"), "receiver.py", addr)
	}},
	{"node", func(t *testing.T, addr string) *exec.Cmd {
		libraryOfNode(t)
		return exec.Command(program(t, "node"), "receiver.mjs", addr)
	}},
	{"php", func(t *testing.T, addr string) *exec.Cmd {
		return exec.Command(program(t, "php"), "-S", addr, "receiver.php")
	}},
}

// libraryOfNode makes sure that the Standard Webhooks library is where package-lock.json wants it.
func libraryOfNode(t *testing.T) {
	t.Helper()
	dir := filepath.Join(examples, "receiver-node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "standardwebhooks")); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("npm ci was not run in " + dir + "; .ci/examples does it")
	}
	t.Skip("npm ci was not run in " + dir)
}

// example is a running receiver.
type example struct {
	t    *testing.T
	url  string
	make func() *exec.Cmd
	cmd  *exec.Cmd
}

func (e *example) start() {
	e.t.Helper()
	e.cmd = e.make()
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if resp, err := http.Get(e.url); err == nil {
			resp.Body.Close()
			return
		}
	}
	e.t.Fatal("the receiver does not answer")
}

func (e *example) kill() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

func (e *example) total() string {
	e.t.Helper()
	resp, err := http.Get(e.url)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// post sends a request signed as Postern does, past Postern.
func (e *example) post(id, body string, at time.Time, keys ...string) int {
	e.t.Helper()
	r, err := http.NewRequest("POST", e.url+"/hook", strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	config := signing.Config{Scheme: signing.Standard}
	for _, key := range keys {
		config.Secrets = append(config.Secrets, []byte(key))
	}
	if len(keys) > 0 {
		signer, err := signing.New(config)
		if err != nil {
			e.t.Fatal(err)
		}
		for _, field := range signer.Sign(id, at, []byte(body)) {
			r.Header.Set(field.Name, field.Value)
		}
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Each receiver books what Postern delivers once, refuses what is not signed, and knows after a kill what it booked.
func TestReceiverExamples(t *testing.T) {
	t.Parallel()
	for _, c := range receivers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, addr := t.TempDir(), freeAddr(t)
			if err := os.WriteFile(filepath.Join(dir, "secrets"), []byte(whsec([]byte("old secret"))+"\n"+whsec([]byte("older secret"))+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			e := &example{t: t, url: "http://" + addr, make: func() *exec.Cmd {
				cmd := c.command(t, addr)
				cmd.Dir = filepath.Join(examples, "receiver-"+c.name)
				cmd.Env = append(os.Environ(), "SECRETS="+filepath.Join(dir, "secrets"), "ORDERS="+filepath.Join(dir, "orders"), "PYTHONDONTWRITEBYTECODE=1")
				return cmd
			}}
			e.start()
			t.Cleanup(func() { e.kill() })
			e.delivered(addr)
			e.refuses()
			e.kill()
			e.start()
			if code := e.post("evt_1", `{"amount":5}`, time.Now(), "old secret"); code != 204 {
				t.Errorf("booked before the kill: %d", code)
			}
			if got := e.total(); got != "4 orders, 14 in all\n" {
				t.Errorf("after a kill: %q", got)
			}
		})
	}
}

// delivered sends three orders through Postern, which signs with a newer secret beside the one that the receiver knows.
func (e *example) delivered(addr string) {
	e.t.Helper()
	p := newPostern(e.t, calm+"endpoints:\n  - name: orders\n    url: http://"+addr+"/hook\n    sign: { scheme: standard, secrets: [\"file:new\", \"file:old\"] }\n")
	p.secretFile("new", whsec([]byte("new secret")))
	p.secretFile("old", whsec([]byte("old secret")))
	p.start()
	for i, amount := range []int{5, 7, 1} {
		p.accept("POST", "/to/orders", `{"amount":`+strconv.Itoa(amount)+`}`, "Postern-Event-Id: evt_"+strconv.Itoa(i+1))
	}
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		p.waitState(id, "delivered", patience)
	}
}

func (e *example) refuses() {
	e.t.Helper()
	now := time.Now()
	for _, c := range []struct {
		name, id, body string
		at             time.Time
		keys           []string
		want           int
	}{
		{"a repetition", "evt_1", `{"amount":5}`, now, []string{"old secret"}, 204},
		{"signed by a stranger", "evt_4", `{"amount":100}`, now, []string{"a stranger"}, 401},
		{"not signed", "evt_4", `{"amount":100}`, now, nil, 401},
		{"captured and kept", "evt_4", `{"amount":100}`, now.Add(-time.Hour), []string{"old secret"}, 401},
		{"from the future", "evt_4", `{"amount":100}`, now.Add(time.Hour), []string{"old secret"}, 401},
		{"no JSON", "evt_4", `{`, now, []string{"old secret"}, 422},
		{"no order", "evt_4", `null`, now, []string{"old secret"}, 422},
		{"no number", "evt_4", `{"amount":"5"}`, now, []string{"old secret"}, 422},
		{"too long", "evt_4", `{"amount":100}` + strings.Repeat(" ", 1<<20), now, []string{"old secret"}, 413},
	} {
		if got := e.post(c.id, c.body, c.at, c.keys...); got != c.want {
			e.t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	var wg sync.WaitGroup
	for range 8 { // attempts of one event at once
		wg.Go(func() {
			if got := e.post("evt_5", `{"amount":1}`, now, "older secret"); got != 204 {
				e.t.Errorf("one of several at once: %d", got)
			}
		})
	}
	wg.Wait()
	if got := e.total(); got != "4 orders, 14 in all\n" {
		e.t.Errorf("%q", got)
	}
}
