package spool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// killEnv makes the test binary a child that works on the spool in the directory it names until it is killed.
const killEnv = "POSTERN_TEST_SPOOL_CHILD"

// keysEnv is how many keys the child has, the last one being the newest; it goes to and fro between them while it works.
const keysEnv = "POSTERN_TEST_SPOOL_KEYS"

// childKeys are the first n keys, the newest first.
func childKeys(n int) [][]byte {
	var keys [][]byte
	for i := n; i > 0; i-- {
		keys = append(keys, key(i))
	}
	return keys
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(killEnv); dir != "" {
		killedChild(dir)
		return
	}
	os.Exit(m.Run())
}

// killedChild accepts and finishes without end, and says each thing on its standard output: an acceptance after it was
// acknowledged, a delivery before it is recorded, and a record after it is on disk.
func killedChild(dir string) {
	var out sync.Mutex
	say := func(what, id string) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf("%s %s\n", what, id)
	}
	cfg := Defaults()
	cfg.Dir = dir
	cfg.MaxBytes = 32 * mib
	cfg.Outbox = true
	count, _ := strconv.Atoi(os.Getenv(keysEnv))
	cfg.Keys = childKeys(count)
	ready := make(chan struct{})
	var s *Spool
	finish := func(l *Lease) {
		<-ready
		say("sent", l.Event.ID)
		r := delivered(l)
		if rand.IntN(3) == 0 {
			r = Result{Attempt: attempt(l, 500), Verdict: VerdictRetry, NextAttempt: time.Now(), Answer: &Answer{StatusCode: 500, Body: []byte("no")}}
		}
		r.Done = func(err error) {
			if err == nil && r.Verdict == VerdictDelivered {
				say("recorded", l.Event.ID)
			}
		}
		s.Finish(l, r)
	}
	cfg.Committed = func(list []Committed) {
		for _, c := range list {
			go finish(c.Lease)
		}
	}
	s, err := Open(cfg)
	if err != nil {
		fmt.Println("failed", err)
		return
	}
	close(ready)
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				ev := event(fmt.Sprintf("e-%d-%d-%d", os.Getpid(), w, i), endpointA, strings.Repeat("x", rand.IntN(3000)))
				if _, err := s.Append(context.Background(), ev); err == nil {
					say("accepted", ev.ID)
				}
			}
		}()
	}
	for turn := 0; ; turn++ {
		if turn%4 == 3 && count > 1 { // the newest becomes the oldest
			cfg.Keys = append(cfg.Keys[1:], cfg.Keys[0])
			if err := s.SetKeys(context.Background(), cfg.Keys); err != nil {
				say("failed", err.Error())
			}
		}
		leases, _, err := s.Lease(endpointA, time.Now(), 10, mib)
		if err != nil {
			fmt.Println("failed", err)
		}
		for _, l := range leases {
			finish(l)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestKilledProcess: what was acknowledged is delivered or kept, and what was recorded as delivered is not kept.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	accepted, sent, recorded := map[string]bool{}, map[string]bool{}, map[string]bool{}
	sets := map[string]map[string]bool{"accepted": accepted, "sent": sent, "recorded": recorded}
	for range 6 {
		runUntilKilled(t, dir, 10+rand.IntN(300), sets)
	}
	report, err := Check(dir)
	if err != nil || len(report.Problems) > 0 {
		t.Fatalf("check: %v, %q", err, report.Problems)
	}
	cfg := Defaults()
	cfg.Dir, cfg.MaxBytes = dir, 32*mib
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	leases, _, err := s.Lease(endpointA, time.Now().Add(time.Hour), 1_000_000, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, l := range leases {
		kept[l.Event.ID] = true
		if recorded[l.Event.ID] {
			t.Errorf("event %s was recorded as delivered and is leased again", l.Event.ID)
		}
	}
	for id := range accepted {
		if !kept[id] && !sent[id] {
			t.Errorf("event %s was acknowledged and is gone", id)
		}
	}
}

// runUntilKilled runs the child, kills it when it has accepted so many events and recorded one, and collects what it said.
func runUntilKilled(t *testing.T, dir string, events int, sets map[string]map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	accepted, recorded := 0, 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		what, id, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "accepted":
			accepted++
		case "recorded":
			recorded++
		}
		if accepted >= events && recorded > 0 {
			_ = cmd.Process.Kill()
		}
		if sets[what] == nil {
			t.Errorf("the child says %q", lines.Text())
			_ = cmd.Process.Kill()
			continue
		}
		sets[what][id] = true
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

// TestKilledWhileKeysChange: at whatever moment, what the spool notes of keys is enough for its records, none of them is
// lost, and in the end one key opens them all.
func TestKilledWhileKeysChange(t *testing.T) {
	dir := t.TempDir()
	accepted, sent := map[string]bool{}, map[string]bool{}
	sets := map[string]map[string]bool{"accepted": accepted, "sent": sent, "recorded": {}}
	const most = 4
	for n := range 2 * most {
		t.Setenv(keysEnv, strconv.Itoa(min(n, most)))
		runUntilKilled(t, dir, 10+rand.IntN(300), sets)
		if report, err := Check(dir, childKeys(most)...); err != nil || len(report.Problems) > 0 {
			t.Fatalf("check: %v, %q", err, report.Problems)
		}
	}
	r := newRig(t, func(c *Config) { c.Dir, c.MaxBytes, c.Outbox, c.Keys = dir, 32*mib, true, childKeys(most) })
	for r.Keys().Rewriting {
		r.must(r.do(func(*txn) error { return nil }))
	}
	r.cfg.Keys = r.cfg.Keys[:1]
	r.reopen()
	kept := map[string]bool{}
	for _, l := range r.lease(endpointA, 1_000_000) {
		kept[l.Event.ID] = true
		if v, err := r.Get(l.Event.ID, true); err != nil || v.Attempts > 0 && v.Answer == nil {
			t.Errorf("event %s: %v, answer %v", l.Event.ID, err, v.Answer)
		}
		r.Release(l)
	}
	for id := range accepted {
		if !kept[id] && !sent[id] {
			t.Errorf("event %s was acknowledged and is gone", id)
		}
	}
	if n := r.Stats().SetAside; n != 0 {
		t.Errorf("%d of %d were set aside", n, len(accepted))
	}
}
