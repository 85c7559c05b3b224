package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"postern/configs"
	"postern/proxy/app"
	"postern/proxy/cli/term"
)

// runReal starts the real thing.
func runReal(ctx context.Context, i Instance) error {
	return app.Run(ctx, app.Options{
		Config: configs.Options{Path: i.ConfigFile}, Version: "test", Stderr: i.Log,
		Ready: func(a app.Addrs) { i.Ready(a.Ingest, a.Admin) },
	})
}

// ownTemp gives the demo a temporary folder of its own, so that what it leaves can be seen.
func ownTemp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestQuickDemoProvesItself(t *testing.T) {
	dir := ownTemp(t)
	for _, tty := range []bool{false, true} {
		var out bytes.Buffer
		err := Run(t.Context(), Options{Out: &term.Writer{Writer: &out, TTY: tty}, Quick: true, Start: runReal})
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, want := range []string{"accepted 103, delivered 97, ", "dead letters 6", "credentials: ", "P95", "\nProof: the receivers saw 103 of 103 accepted event IDs.\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in\n%s", want, out.String())
			}
		}
		if redrawn := strings.Contains(out.String(), "\x1b["); redrawn != tty {
			t.Errorf("redrawn: %v, on a terminal: %v", redrawn, tty)
		}
	}
	var out bytes.Buffer
	var sum Summary
	err := Run(t.Context(), Options{Out: &term.Writer{Writer: &out}, Quick: true, Start: runReal, Result: func(got Summary) error { sum = got; return nil }})
	if err != nil || !sum.Proven || sum.Accepted != 103 || sum.Delivered != 97 || sum.DeadLetters != 6 || sum.Unseen == nil || len(sum.Endpoints) != 7 || len(sum.Analysis) != 1 {
		t.Errorf("as a result: %v, %+v", err, sum)
	}
	if strings.Contains(out.String(), "Proof") || !strings.Contains(out.String(), "accepted 103") {
		t.Errorf("beside the result:\n%s", out.String())
	}
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("the demo left %v", names)
	}
}

// forgetful answers like a Postern that says yes and delivers nothing.
func forgetful(ctx context.Context, i Instance) error {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/events"):
			io.WriteString(w, `{"events":[],"next_cursor":null}`)
		case strings.HasPrefix(r.URL.Path, "/api/"):
			io.WriteString(w, `{}`)
		default:
			id := "evt_" + string(rune('a'+n.Add(1)%26))
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, `{"id":"`+id+`","endpoint":"x","state":"pending","duplicate":false}`)
		}
	}))
	defer server.Close()
	i.Ready(server.URL, server.URL)
	<-ctx.Done()
	return nil
}

func TestLostEventsFailTheDemo(t *testing.T) {
	dir := ownTemp(t)
	var out bytes.Buffer
	err := Run(t.Context(), Options{Out: &term.Writer{Writer: &out}, Quick: true, Start: forgetful})
	if err == nil || !strings.Contains(err.Error(), "did not see 103 of 103 accepted events") || strings.Contains(out.String(), "Proof") {
		t.Errorf("got %v\n%s", err, out.String())
	}
	var sum Summary
	again := Run(t.Context(), Options{Out: &term.Writer{Writer: io.Discard}, Quick: true, Start: forgetful, Result: func(got Summary) error { sum = got; return nil }})
	if again == nil || sum.Proven || sum.Accepted != 103 || len(sum.Unseen) != 103 {
		t.Errorf("as a result: %v, %+v", again, sum)
	}
	names := left(t, dir)
	if len(names) != 2 || !strings.Contains(err.Error()+again.Error(), names[0]) {
		t.Errorf("the folder is not kept and named: %v, %v", names, err)
	}
}

func TestAPosternThatDoesNotStart(t *testing.T) {
	ownTemp(t)
	broken := errors.New("no disk")
	err := Run(t.Context(), Options{Out: &term.Writer{Writer: io.Discard}, Quick: true, Start: func(context.Context, Instance) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptedDemoCleansUp(t *testing.T) {
	dir := ownTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, Options{Out: &term.Writer{Writer: io.Discard}, Start: func(ctx context.Context, i Instance) error {
		cancel()
		return forgetful(ctx, i)
	}})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("the demo left %v", names)
	}
}

func TestTheScriptsConfigurationIsValid(t *testing.T) {
	for _, s := range []script{full(), quick()} {
		file := filepath.Join(t.TempDir(), "postern.yaml")
		if err := os.WriteFile(file, []byte(s.config(t.TempDir(), "http://127.0.0.1:1")), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := configs.Load(configs.Options{Path: file})
		if err != nil {
			t.Fatal(err)
		}
		if len(cfg.Endpoints) != len(s.roles)-1 {
			t.Errorf("%d endpoints for %d roles, one of them ad hoc", len(cfg.Endpoints), len(s.roles))
		}
	}
}
