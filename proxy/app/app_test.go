package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/configs"
	"postern/proxy/delivery"
	"postern/proxy/ingest"
	"postern/proxy/retry"
	"postern/proxy/scheduler"
	"postern/proxy/target"
	"postern/proxy/telemetry"
	"postern/spool"
)

// load reads a configuration from text.
func load(t *testing.T, text string) *configs.Config {
	t.Helper()
	cfg, err := configs.Load(configs.Options{Path: write(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func parse(t *testing.T, raw string) target.Target {
	t.Helper()
	parsed, err := target.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

const twoEndpoints = `
targets: { allow: [10.1.0.0/16] }
defaults: { timeout: 7s }
endpoints:
  - { name: a, url: "http://10.9.0.1/x?aff=1", match: ["https://match.example/in"], timeout: 3s }
  - { name: b, url: "https://b.example/" }
`

func TestBookFindsPolicies(t *testing.T) {
	b, err := newBook(load(t, twoEndpoints), quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for raw, want := range map[string]string{
		"https://match.example/in/deeper?x=1": "a",
		"https://match.example/inside":        "https://match.example",
		"https://OTHER.example:443/":          "https://other.example",
		"http://10.1.2.3/":                    "http://10.1.2.3",
	} {
		if e, err := b.AdHoc(parse(t, raw)); err != nil || e.Name != want {
			t.Errorf("%s goes by %q, %v; want %q", raw, e.Name, err, want)
		}
	}
	for _, raw := range []string{"http://10.2.0.1/", "http://127.0.0.1/", "http://10.9.0.1/x"} {
		if _, err := b.AdHoc(parse(t, raw)); err == nil {
			t.Errorf("%s is let through", raw)
		}
	}
	if e := b.find("a"); e == nil || e.endpoint.Timeout != 3*time.Second {
		t.Errorf("a: %+v", e)
	}
	if e := b.find("https://some.example"); e == nil || e.endpoint.Timeout != 7*time.Second {
		t.Errorf("ad hoc: %+v", e)
	}
	if _, ok := b.Policy("left"); ok {
		t.Error("an endpoint that is nowhere has a policy")
	}
}

func TestBookReloadsWholeOrNotAtAll(t *testing.T) {
	b, err := newBook(load(t, twoEndpoints), quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	before := b.find("a")
	bad := load(t, twoEndpoints)
	bad.Endpoints[1].Policy.TLS.CAFile = filepath.Join(t.TempDir(), "gone.pem")
	if err := b.reload(bad); err == nil {
		t.Fatal("a CA file that is gone was taken")
	}
	if b.find("a") != before || b.config() == bad {
		t.Error("half of a bad configuration is in force")
	}
	if err := b.reload(load(t, "targets: { ad_hoc: false }\n")); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Named("a"); ok || b.find("a") != nil {
		t.Error("an endpoint that left is still there")
	}
	if _, err := b.AdHoc(parse(t, "https://x.example/")); !errors.Is(err, errAdHoc) {
		t.Errorf("ad_hoc: false says %v", err)
	}
}

func TestBookLetsUnusedTransportsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := newBook(load(t, twoEndpoints), quiet())
		if err != nil {
			t.Fatal(err)
		}
		kept := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			b.sweep()
			if b.find("a") == nil || len(b.adHoc) != want {
				t.Errorf("%d ad hoc transports are kept, want %d beside those that are configured", len(b.adHoc), want)
			}
		}
		b.find("https://some.example")
		kept(idleTransport, 1)
		kept(time.Second, 0)
		for i := range manyEndpoints {
			b.find(fmt.Sprintf("https://some%d.example", i))
		}
		kept(idleTransportCrowd, manyEndpoints)
		kept(time.Second, 0)
	})
}

func TestPortInUseSaysWhichAndWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, err = listen("ingest", "listen", configs.Listener{Address: address})
	for _, want := range []string{address, "in use", "`listen`", "--listen"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestASocketThatCannotBeOpenedSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, why := range map[string]string{path: "no socket", filepath.Join(t.TempDir(), "no", "s"): "Make it"} {
		_, err := listen("admin", "admin.listen", configs.Listener{Address: "unix:" + path})
		for _, want := range []string{path, why, "`admin.listen`"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := configs.Listener{Address: "unix:" + path}
	first, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen("ingest", "listen", l); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a socket that somebody listens on: %v", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	first.Close()
	second, err := listen("ingest", "listen", l)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestWaitersAreAnsweredOnce(t *testing.T) {
	w := newWaiters()
	answers, done := w.Wait("e1")
	twin, twinDone := w.Wait("e1")
	defer twinDone()
	if !w.wanted("e1") || w.wanted("e2") {
		t.Error("wanted is wrong")
	}
	w.answer("e1", delivery.Result{Response: &delivery.Response{Status: 201, Body: []byte("x")}})
	w.answer("e1", delivery.Result{Class: retry.Timeout})
	if a := <-answers; !a.Delivered || a.Status != 201 || string(a.Body) != "x" {
		t.Errorf("answer %+v", a)
	}
	select {
	case a := <-twin:
		t.Errorf("the twin got %+v", a)
	default:
	}
	done()
	if len(w.waiting) != 0 {
		t.Error("somebody is still waited for")
	}
	var _ ingest.Waiters = w
}

// What is logged of an attempt: everything that helps, and nothing of what was in it but the query keys let through.
func TestLogLineOfAnAttempt(t *testing.T) {
	var out bytes.Buffer
	cfg := load(t, "query_keys_in_logs: [cid]\n")
	b, err := newBook(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	o := &observer{log: slog.New(slog.NewJSONHandler(&out, nil)), metrics: telemetry.New(telemetry.Config{}), book: b}
	o.Told(scheduler.Told{
		Lease: &spool.Lease{Event: &spool.Event{
			ID: "e1", Endpoint: "https://partner.example", Target: "https://u:SECRET@partner.example/SECRET?cid=7&sig=SECRET",
			Body: []byte("SECRET"), Headers: []spool.Header{{Name: "X", Value: "SECRET"}},
		}},
		Outcome: scheduler.Outcome{
			Attempt: spool.Attempt{Number: 2, StatusCode: 500, Duration: time.Millisecond}, Class: "http_500",
			Answer: &spool.Answer{Body: []byte("SECRET"), Location: "SECRET"},
		},
		Result: retry.OutcomeTransient, Verdict: spool.VerdictRetry, Next: time.Now(), Recorded: time.Now(),
	})
	line := out.String()
	for _, want := range []string{`"event_id":"e1"`, `"attempt":2`, `"status_code":500`, `"error":"http_500"`, `"query":"cid=7"`, `"next_attempt_at"`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is missing in %s", want, line)
		}
	}
	if strings.Contains(line, "SECRET") || strings.Count(line, "\n") != 1 {
		t.Errorf("the line is %q", line)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postern.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnknownEndpointIsNotThere(t *testing.T) {
	cfg := load(t, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nspool: { dir: "+t.TempDir()+" }\n"+twoEndpoints)
	a := &app{log: quiet(), level: new(slog.LevelVar)}
	if err := a.build(cfg); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { a.scheduler.Run(); close(ended) }()
	defer func() {
		a.scheduler.Stop(t.Context())
		<-ended
		if err := a.abandon(); err != nil {
			t.Error(err)
		}
	}()
	_, err := a.spool.Append(t.Context(), &spool.Event{
		ID: "e", Endpoint: "https://c.example", Target: "https://c.example/", Method: "GET", AcceptedAt: time.Now(), NotBefore: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "https://c.example": true, "nobody": false, "https://d.example": false} {
		if _, ok := (endpointSide{a}).Get(name); ok != want {
			t.Errorf("%s is there: %v, want %v", name, ok, want)
		}
	}
}
