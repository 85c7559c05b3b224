package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// letters makes one dead letter per answer, each at an endpoint of its own name, and returns the Postern and the receiver.
func deadLetters(t *testing.T, n map[string]int, answers map[string]reply) (*postern, *receiver) {
	t.Helper()
	r := newReceiver(t, func(_ int, q request) reply {
		_, name, _ := strings.Cut(q.Line, " /")
		name, _, _ = strings.Cut(name, " ")
		return answers[name]
	})
	var conf strings.Builder
	conf.WriteString("defaults: { timeout: 1m, retry: { schedule: [] }, " + patient + " }\nendpoints:\n")
	for name := range n {
		fmt.Fprintf(&conf, "  - { name: %s, url: %q }\n", name, r.url("/"+name))
	}
	p := startPostern(t, conf.String())
	for name, count := range n {
		for range count {
			if answers[name].Hang {
				p.accept("POST", "/to/"+name, "x", "Postern-Timeout: 300ms")
			} else {
				p.accept("POST", "/to/"+name, "x")
			}
		}
	}
	p.settled(patience)
	return p, r
}

func TestDeadLetterFilters(t *testing.T) {
	t.Parallel()
	before := time.Now().Add(-time.Minute)
	p, _ := deadLetters(t, map[string]int{"bad": 3, "denied": 2, "hangs": 1, "fine": 4},
		map[string]reply{"bad": status(400), "denied": status(403), "hangs": {Hang: true}, "fine": {}})
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	for query, want := range map[string]int{
		"": 6, "endpoint=bad": 3, "endpoint=fine": 0, "status=403": 2, "status=400&endpoint=denied": 0, "error=timeout": 1, "error=http_400": 3,
		"since=" + stamp(before): 6, "since=1h": 6, "since=0s": 0, "until=" + stamp(before): 0, "until=" + stamp(time.Now().Add(time.Minute)): 6,
		"since=1h&error=timeout&endpoint=hangs": 1, "limit=2": 2,
	} {
		var page struct {
			DeadLetters []event `json:"dead_letters"`
		}
		code := p.api("GET", "dead-letters?"+query, "", &page)
		if code != 200 || len(page.DeadLetters) != want {
			t.Errorf("%q: status %d, %d dead letters, want %d", query, code, len(page.DeadLetters), want)
		}
		for _, e := range page.DeadLetters {
			if e.State != "dead_letter" || e.DeadReason == "" {
				t.Errorf("%q: %+v", query, e)
			}
		}
	}
	for _, query := range []string{"status=abc", "status=99", "error=No Such", "since=yesterday", "until=x", "endpont=bad", "since=1h&until=2h"} {
		if code := p.api("GET", "dead-letters?"+strings.ReplaceAll(query, " ", "%20"), "", nil); code != 400 {
			t.Errorf("%q: status %d, want 400", query, code)
		}
	}
}

// bulkResult is the answer to a replay or a purge.
type bulkResult struct {
	Matched, Replayed, Purged int
	DryRun                    bool `json:"dry_run"`
	Started                   bool
	ID                        string
}

func TestReplayAndPurge(t *testing.T) {
	t.Parallel()
	p, r := deadLetters(t, map[string]int{"bad": 6, "denied": 4}, map[string]reply{"bad": status(400), "denied": status(403)})
	var got bulkResult
	if p.api("POST", "dead-letters/replay", `{"endpoint":"bad","dry_run":true}`, &got); got.Matched != 6 || got.Replayed != 0 || !got.DryRun {
		t.Errorf("dry run: %+v", got)
	}
	if n := len(r.requests()); n != 10 {
		t.Fatalf("a dry run sent something: %d requests", n)
	}
	ids := r.byEvent()
	r.setAnswer(nil)
	got = bulkResult{}
	if p.api("POST", "dead-letters/replay", `{"endpoint":"bad"}`, &got); got.Matched != 6 || got.Replayed != 6 {
		t.Errorf("replay: %+v", got)
	}
	p.settled(patience)
	for _, q := range r.wait(16, patience)[10:] {
		if ids[q.eventID()] != 1 || q.Header.Get("Postern-Attempt") != "2" || !strings.HasPrefix(q.Line, "POST /bad ") {
			t.Errorf("replayed: %s as %s attempt %s", q.Line, q.eventID(), q.Header.Get("Postern-Attempt"))
		}
	}
	for body, want := range map[string]int{"": 400, "{": 400, `{"endpont":"bad"}`: 400, `{"status":"403"}`: 400, `{"rate":1}`: 400, `[]`: 400, `null`: 400, `{"endpoint":""}`: 400} {
		if code := p.api("POST", "dead-letters/purge", body, nil); code != want {
			t.Errorf("purge with %q: status %d, want %d", body, code, want)
		}
	}
	got = bulkResult{}
	if p.api("POST", "dead-letters/purge", `{"status":403,"dry_run":true}`, &got); got.Matched != 4 || got.Purged != 0 {
		t.Errorf("purge, dry run: %+v", got)
	}
	got = bulkResult{}
	if p.api("POST", "dead-letters/purge", `{"status":403}`, &got); got.Matched != 4 || got.Purged != 4 {
		t.Errorf("purge: %+v", got)
	}
	p.metricIs(0, "postern_events", `state="dead_letter"`)
}

// A replay with a rate runs in the background, keeps to the rate, shows its progress, and can be stopped.
func TestPacedReplay(t *testing.T) {
	t.Parallel()
	p, r := deadLetters(t, map[string]int{"bad": 10}, map[string]reply{"bad": status(400)})
	r.setAnswer(nil)
	var job bulkResult
	start := time.Now()
	if code := p.api("POST", "dead-letters/replay", `{"rate":10}`, &job); code != 202 || !job.Started || job.ID == "" {
		t.Fatalf("status %d: %+v", code, job)
	}
	var progress struct {
		State             string
		Matched, Replayed int
	}
	p.eventually(patience, "the replay to end", func() bool {
		p.api("GET", "dead-letters/replays/"+job.ID, "", &progress)
		return progress.State == "done"
	})
	if took := time.Since(start); took < 900*time.Millisecond || progress.Replayed != 10 {
		t.Errorf("%d replayed after %v, want 10 after 0.9 s", progress.Replayed, took)
	}
	for i, d := range p.departures(r.wait(20, patience)[10:]) {
		if took := d.latest.Sub(start); took < time.Duration(i)*100*time.Millisecond {
			t.Errorf("event %d of 10 a second left after %v", i+1, took)
		}
	}

	r.setAnswer(script(status(400)))
	p.accept("POST", "/to/bad", "x")
	p.accept("POST", "/to/bad", "x")
	p.settled(patience)
	p.api("POST", "dead-letters/replay", `{"rate":"1/1h"}`, &job)
	p.api("DELETE", "dead-letters/replays/"+job.ID, "", nil)
	p.eventually(patience, "the replay to be stopped", func() bool {
		p.api("GET", "dead-letters/replays/"+job.ID, "", &progress)
		return progress.State == "stopped"
	})
	// The one that was not reached is one still; one whose turn had come may be on its way, and dies again.
	p.metricIs(2, "postern_events", `state="dead_letter"`)
	if n := len(r.requests()); n < 22 || n > 23 {
		t.Errorf("%d requests, want 22, and one more at most by the stopped replay", n)
	}
}

// The analysis names what dead letters have in common, and what to do. A trickle needs a day of history: package
// findings tests it.
func TestAnalysis(t *testing.T) {
	t.Parallel()
	p, _ := deadLetters(t, map[string]int{"down": 55, "denied": 2, "limited": 3, "bad": 1},
		map[string]reply{"down": status(500), "denied": status(401), "limited": status(429), "bad": status(400)})
	var report struct {
		Endpoints []struct {
			Endpoint     string
			DeadCount    int       `json:"dead_count"`
			PrimaryError string    `json:"primary_error"`
			PrimaryCode  int       `json:"primary_status_code"`
			FirstDead    time.Time `json:"first_dead"`
			LastDead     time.Time `json:"last_dead"`
			AvgAttempts  float64   `json:"avg_attempts"`
			Findings     []struct{ Pattern, Message, Action string }
		}
	}
	p.api("GET", "dead-letters/analysis?hours=24", "", &report)
	want := map[string]struct {
		count, code int
		class       string
		pattern     string
	}{
		"down": {55, 500, "http_500", "cluster"}, "denied": {2, 401, "http_401", "credentials"},
		"limited": {3, 429, "http_429", "throttled"}, "bad": {1, 400, "http_400", ""},
	}
	if len(report.Endpoints) != len(want) {
		t.Fatalf("%d endpoints: %+v", len(report.Endpoints), report)
	}
	for _, e := range report.Endpoints {
		w := want[e.Endpoint]
		if e.DeadCount != w.count || e.PrimaryCode != w.code || e.PrimaryError != w.class || e.AvgAttempts != 1 || e.LastDead.Before(e.FirstDead) {
			t.Errorf("%+v, want %+v", e, w)
		}
		var patterns []string
		for _, f := range e.Findings {
			patterns = append(patterns, f.Pattern)
			if f.Message == "" || f.Action == "" {
				t.Errorf("%s: %+v does not say what to do", e.Endpoint, f)
			}
		}
		if strings.Join(patterns, ",") != w.pattern {
			t.Errorf("%s: patterns %v, want %q", e.Endpoint, patterns, w.pattern)
		}
	}
	for _, query := range []string{"hours=0", "hours=x", "days=1"} {
		if code := p.api("GET", "dead-letters/analysis?"+query, "", nil); code != 400 {
			t.Errorf("%s: status %d, want 400", query, code)
		}
	}
}
