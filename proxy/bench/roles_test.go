package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	posternserver "postern/proxy/server"
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
	r.count([]byte("evt_1"), 0)
	r.count([]byte("evt_1"), 0)
	select {
	case got := <-reached:
		t.Fatalf("a repeated event was taken for the second one: %+v", got)
	default:
	}
	r.count([]byte("evt_2"), 0)
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
	for _, c := range []struct {
		role   string
		conns  int
		answer int
		get    bool
	}{{"proxy", 0, 200, false}, {"proxy", 4, 200, true}, {"relay", 4, 202, false}, {"relay", 4, 202, true}} {
		reference := start(t, c.role, proxySpec{Receiver: sinkRole.addr, Conns: c.conns})
		spec := loadSpec{Conns: 4, Body: 500, Get: c.get, Want: c.answer, Count: 100}
		f, err := pass(t.Context(), sinkRole, reference.server("/sink"), spec)
		if err != nil || f["rate"] <= 0 {
			t.Errorf("through %+v: %v, %v", c, f, err)
		}
	}
	relay := start(t, "relay", proxySpec{Receiver: "127.0.0.1:1", Conns: 1})
	if r, err := runLoad(t.Context(), loadSpec{Addr: relay.addr, Path: "/", Conns: 1, Want: 502, Count: 1}); err != nil {
		t.Errorf("a relay without a receiver: %+v, %v", r, err)
	}
}

// The relay's server is set up as the one that it stands beside.
func TestTheRelayIsSetUpAsPosternIs(t *testing.T) {
	s, want := newRelay(proxySpec{Conns: 1}), posternserver.Ingest
	got := posternserver.Limits{Header: s.ReadHeaderTimeout, Read: s.ReadTimeout, Write: s.WriteTimeout, Idle: s.IdleTimeout, HeaderBytes: s.MaxHeaderBytes}
	if got != want || s.Protocols.HTTP2() || !s.DisableGeneralOptionsHandler {
		t.Errorf("%+v, want %+v", got, want)
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
	for _, args := range [][]string{nil, {"load"}, {"juggler", "{}"}, {"load", "nonsense"}, {"proxy", "nonsense"}, {"relay", "nonsense"}, {"queue", "nonsense"}} {
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
		says   string // of the error
	}{
		{"", 5, ""}, {"--quick", 1, ""}, {"--quick --rounds 4", 4, ""}, {"--only accept,idle", 5, ""}, {"--growth --plot x", 5, ""}, {"--json x --plot y", 5, ""},
		{"--rounds -1", 0, "at least one"}, {"--only accept,nonsense", 0, "there are [accept"}, {"extra", 0, "extra"}, {"--nonsense", 0, "nonsense"},
		{"--duration -1s", 0, "negative"}, {"--plot x", 0, "--growth"}, {"--growth --only idle", 0, "--only"},
	} {
		o, err := parseOptions(strings.Fields(c.args), io.Discard)
		if c.says == "" && (err != nil || o.rounds != c.rounds) {
			t.Errorf("%q: %+v, %v", c.args, o, err)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v does not say %q", c.args, err, c.says)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, o := range []options{{}, {quick: true}, {duration: 7 * time.Second}} {
		s := o.sizes()
		if o.duration > 0 && (s.load != o.duration || s.open != o.duration) {
			t.Errorf("%+v: %+v", o, s)
		}
		if s.drain > s.backlog/2 || s.rate*s.open.Seconds() < 100 {
			t.Errorf("%+v: sizes that do not fit together: %+v", o, s)
		}
	}
}

func TestWhatMustBeAskedForIsLeftOut(t *testing.T) {
	var usual, named []string
	for _, e := range experiments {
		if (options{}).wants(e) {
			usual = append(usual, e.name)
		}
		if (options{only: []string{"views", "idle"}}).wants(e) {
			named = append(named, e.name)
		}
	}
	if slices.Contains(usual, "views") || len(usual) != len(experiments)-1 || !slices.Equal(named, []string{"idle", "views"}) {
		t.Errorf("usual %v, named %v", usual, named)
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := run(ctx, []string{"--quick", "--postern", "/nonexistent"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
