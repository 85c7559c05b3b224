package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"postern/sync/pgtest"
)

// TestMain lets the test binary play the roles, as the program itself does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleArg {
		os.Exit(report(playRole(os.Args[2:], os.Stdin, os.Stdout)))
	}
	pgtest.Main(m)
}

func start(t *testing.T, name string, parameters any) *child {
	t.Helper()
	c, err := startRole(t.Context(), name, parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

func TestReceiverCountsEventsOnce(t *testing.T) {
	c := start(t, "receiver", nil)
	post := func(id string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+c.addr+"/sink", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if id != "" {
			req.Header.Set("Postern-Event-Id", id)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, id := range []string{"evt_1", "evt_2", "evt_1", "", ""} {
		post(id)
	}
	got, err := c.await(t.Context(), 4)
	if err != nil || got.Requests != 5 || got.Events != 4 || got.First == 0 || got.Last < got.First {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.ask("reset", &got); err != nil || got != (received{}) {
		t.Errorf("after a reset: %+v, %v", got, err)
	}
	post("evt_1")
	if err := c.ask("count", &got); err != nil || got.Events != 1 {
		t.Errorf("an event seen before the reset: %+v, %v", got, err)
	}
}

func TestWaitIsAnsweredByTheEventThatWasMissing(t *testing.T) {
	r := newReceiver()
	reached := r.wait(2)
	r.count([]byte("evt_1"))
	r.count([]byte("evt_1"))
	select {
	case got := <-reached:
		t.Fatalf("a repeated event was taken for the second one: %+v", got)
	default:
	}
	r.count([]byte("evt_2"))
	if got := <-reached; got.Events != 2 || got.Requests != 3 {
		t.Errorf("%+v", got)
	}
}

func TestLoadThroughTheReferences(t *testing.T) {
	answer, sinkRole := start(t, "answer", nil), start(t, "receiver", nil)
	r, err := runLoad(t.Context(), loadSpec{Addr: answer.addr, Path: sinkPath, Conns: 4, Body: 500, Want: 202, Count: 200})
	if err != nil || r.Counted != 200 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, conns := range []int{0, 4} {
		var got received
		if err := sinkRole.ask("reset", &got); err != nil {
			t.Fatal(err)
		}
		proxy := start(t, "proxy", proxySpec{Receiver: sinkRole.addr, Conns: conns})
		if _, err := runLoad(t.Context(), loadSpec{Addr: proxy.addr, Path: "/sink", Conns: 4, Body: 500, Want: 200, Count: 100}); err != nil {
			t.Fatal(err)
		}
		if got, err := sinkRole.await(t.Context(), 100); err != nil || got.Requests != 100 {
			t.Errorf("through the proxy with %d kept connections: %+v, %v", conns, got, err)
		}
	}
}

func TestRunLoadPassesOnWhatWentWrong(t *testing.T) {
	answer := start(t, "answer", nil)
	_, err := runLoad(t.Context(), loadSpec{Addr: answer.addr, Path: "/", Conns: 1, Want: 200, Count: 3})
	if err == nil || !strings.Contains(err.Error(), "202:3") {
		t.Errorf("%v", err)
	}
}

func TestARoleEndsWithItsRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := startRole(ctx, "receiver", nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := c.await(context.Background(), 1); err == nil {
		t.Error("the receiver answers after its run was interrupted")
	}
	c.stop()
	if c.cmd.ProcessState == nil {
		t.Error("the process is still there")
	}
}

func TestPlayRoleRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{nil, {"load"}, {"juggler", "{}"}, {"load", "nonsense"}, {"proxy", "nonsense"}} {
		if err := playRole(args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%v was played", args)
		}
	}
	if err := roleReceiver(strings.NewReader("dance\n"), io.Discard); err == nil {
		t.Error("the receiver took an unknown command")
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args   string
		rounds int
		ok     bool
	}{
		{"", 3, true}, {"-short", 1, true}, {"-short -rounds 4", 4, true}, {"-run acc|idle", 3, true},
		{"-rounds -1", 0, false}, {"-run (", 0, false}, {"extra", 0, false}, {"-nonsense", 0, false},
	} {
		o, err := parseOptions(strings.Fields(c.args), io.Discard)
		if (err == nil) != c.ok || c.ok && o.rounds != c.rounds {
			t.Errorf("%q: %+v, %v", c.args, o, err)
		}
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := run(ctx, []string{"-short", "-postern", "/nonexistent"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := run(t.Context(), []string{"-run", "^nothing$", "-postern", "x"}, io.Discard, io.Discard); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
}
