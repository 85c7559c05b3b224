package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// troubled is a Postern with something of each kind.
func troubled() *glance {
	now := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	ms := func(v float64) *float64 { return &v }
	return &glance{
		now: func() time.Time { return now },
		status: client.Status{
			Pipeline: client.Pipeline{
				Pending: 17, AwaitingRetry: 2, InFlight: 3, DeadLetter: 10, OldestPending: at(-4 * time.Minute), SpoolBytes: 5 << 20,
			},
			InstanceID: "1b4e28ba-2fa1-11d2-883f-0016d3cca427", Version: "1.2.3", Ready: true,
			Sync: json.RawMessage(`{"enabled":true,"connected":true,"lag_seconds":1.5}`),
		},
		activity: client.Activity{DeliveredPerMinute: 44, FailedPerMinute: 2.5},
		endpoints: []client.Endpoint{
			{Name: "fine", Breaker: client.Breaker{State: "closed"}, P95Ms: ms(77)},
			{Name: "busy", Breaker: client.Breaker{State: "closed"}, Queue: client.Queue{Pending: 9}},
			{Name: "letters", Breaker: client.Breaker{State: "closed"}, Queue: client.Queue{DeadLetter: 4}},
			{Name: "shaky", Breaker: client.Breaker{State: "closed", ConsecutiveFailures: 3, FailureThreshold: 10}},
			{Name: "slowing", Breaker: client.Breaker{State: "closed"}, P95Ms: ms(900)},
			{Name: "throttled", Breaker: client.Breaker{State: "closed"}, Limiter: client.Limiter{ThrottledUntil: at(90 * time.Second)}},
			{Name: "https://half.example", Breaker: client.Breaker{State: "half_open"}},
			{Name: "full", Breaker: client.Breaker{State: "open", ConsecutiveFailures: 12}, Queue: client.Queue{Pending: 9}, ShareFull: true},
			{Name: "held", Breaker: client.Breaker{State: "closed"}, Paused: true, PauseReason: "410 Gone"},
			{Name: "down", Breaker: client.Breaker{State: "open", ConsecutiveFailures: 12, OpenedAt: at(-time.Minute), CooldownSeconds: 300}, Queue: client.Queue{Pending: 5}},
		},
		trends: map[string]client.Trend{"slowing": {State: "slowing", RecentP95: 900, EarlierP95: 300}, "fine": {State: "steady", RecentP95: 77, EarlierP95: 77}},
	}
}

func picture(t *testing.T, g *glance, w *term.Writer) string {
	t.Helper()
	var b bytes.Buffer
	w.Writer = &b
	if err := g.write(w); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The worst endpoint comes first, and each line says what is wrong without colour.
func TestTopSortsByTrouble(t *testing.T) {
	text := picture(t, troubled(), &term.Writer{})
	at := 0
	for _, want := range []string{
		"postern 1.2.3  1b4e28ba  ready", "waiting 17", "failed 2", "dead 10", "oldest 4m", "delivered/min 44", "failed/min 2.5", "spool 5.0 MiB", "sync 1s behind",
		"full", shareFull, "down", "12 failures in a row, next try in 4m", "held", "410 Gone", "https://half.example", "one attempt at a time tries it", "throttled", "said 429, next in 1m",
		"slowing", "3.0 times slower than usual (p95 900 ms)", "shaky", "3 of 10 failures in a row", "letters", "4 dead letters", "busy", "fine",
	} {
		found := strings.Index(text[at:], want)
		if found < 0 {
			t.Fatalf("no %q where it should be in\n%s", want, text)
		}
		at += found
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("codes without a terminal: %q", text)
	}
}

// At any width every line has room, and everything that is wrong is there at 80 columns.
func TestTopFits(t *testing.T) {
	g := troubled()
	g.status.Ready, g.status.Reasons = false, []string{"the spool is full: smaller ones may fit, and deliveries go on"}
	g.problem = errors.New("cannot reach http://127.0.0.1:8090: it refuses to be spoken to")
	for _, width := range []int{200, 120, 80, 60, 40, 24} {
		text := picture(t, g, &term.Writer{TTY: true, Width: width})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: a line of %d: %q", width, n, line)
			}
		}
		if !strings.Contains(text, "dead 10") || width >= 80 && !strings.Contains(text, "said 429") {
			t.Errorf("%d columns:\n%s", width, text)
		}
	}
}

func TestTopTellsOfTrouble(t *testing.T) {
	g := troubled()
	g.status.Reasons = []string{"the spool is full", "postern is stopping"}
	g.status.Ready, g.status.Sync, g.problem = false, json.RawMessage(`{"enabled":true,"connected":false,"error":"Postgres cannot be reached"}`), errors.New("cannot reach it\nand a hint")
	g.endpoints = nil
	text := picture(t, g, &term.Writer{TTY: true, Color: true, Width: 80})
	for _, want := range []string{"NOT READY", "the spool is full", "postern is stopping", "FAILING", "NO ANSWER: cannot reach it", "No endpoints", "\x1b[31m"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "hint") {
		t.Error("the whole error, of several lines, is in the picture")
	}
}
