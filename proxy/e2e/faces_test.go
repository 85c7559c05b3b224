package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer is what a client of Postern got.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
	ID     string // the event ID of the header
}

// client never follows anything and never keeps a connection longer than a test.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send hands a request to ingest: path is what follows http://localhost:8089, headers are "Name: value".
func (p *postern) send(method, path, body string, headers ...string) answer {
	p.t.Helper()
	a, err := p.try(method, path, body, headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p *postern) try(method, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, p.ingest, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.URL.Opaque = path // as it is, byte for byte
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b, resp.Header.Get("Postern-Event-Id")}, err
}

// accept sends and insists on a 202. It returns the event ID.
func (p *postern) accept(method, path, body string, headers ...string) string {
	p.t.Helper()
	a := p.send(method, path, body, headers...)
	if a.Status != 202 {
		p.t.Fatalf("%s %s: status %d, want 202: %s", method, path, a.Status, a.Body)
	}
	return a.ID
}

// api calls the admin API and decodes its JSON into out, which may be nil.
func (p *postern) api(method, path, body string, out any) int {
	p.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, p.admin+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return resp.StatusCode
}

// event is one event as the API shows it.
type event struct {
	ID           string
	Endpoint     string
	State        string
	Method       string
	URL          string
	AttemptCount int    `json:"attempt_count"`
	Charged      int    `json:"charged_attempts"`
	DeadReason   string `json:"dead_reason"`
	Attempts     []struct {
		Number     int
		StartedAt  time.Time `json:"started_at"`
		DurationMs float64   `json:"duration_ms"`
		StatusCode int       `json:"status_code"`
		Error      string
	}

	// What follows shows with reveal=1 alone.
	Target       string
	Headers      []struct{ Name, Value string }
	Body         string
	BodyEncoding string `json:"body_encoding"`
	Answer       struct {
		StatusCode int `json:"status_code"`
		Location   string
		Body       string
	}
}

// reveal shows one event whole.
func (p *postern) reveal(id string) event {
	p.t.Helper()
	var e event
	if code := p.api("GET", "events/"+id+"?reveal=1", "", &e); code != 200 {
		p.t.Fatalf("reveal %s: status %d", id, code)
	}
	return e
}

// departed tells when an attempt began and ended by Postern's own clock. A busy receiver notes a request later than it came,
// and not each one equally late, so that the time between two departures cannot be taken from it.
func (p *postern) departed(q request) (began, ended time.Time) {
	p.t.Helper()
	p.eventually(patience, "the record of attempt "+q.Header.Get("Postern-Attempt")+" of "+q.eventID(), func() (known bool) {
		began, ended, known = p.recorded(q)
		return known
	})
	return began, ended
}

// recorded is departed where there may be no record: one that was under way at a kill has none.
func (p *postern) recorded(q request) (began, ended time.Time, known bool) {
	p.t.Helper()
	number, _ := strconv.Atoi(q.Header.Get("Postern-Attempt"))
	var e event
	p.api("GET", "events/"+q.eventID(), "", &e)
	for _, a := range e.Attempts {
		if a.Number == number {
			return a.StartedAt, a.StartedAt.Add(time.Duration(a.DurationMs * float64(time.Millisecond))), true
		}
	}
	return began, ended, false
}

// waitState waits until an event is in this state.
func (p *postern) waitState(id, state string, limit time.Duration) event {
	p.t.Helper()
	var e event
	p.eventually(limit, "event "+id+" to be "+state, func() bool {
		e = event{}
		p.api("GET", "events/"+id, "", &e)
		return e.State == state
	})
	return e
}

// waiting is how many events are neither delivered nor dead letters.
func (p *postern) waiting() int {
	p.t.Helper()
	var s struct {
		Pending       int
		AwaitingRetry int `json:"awaiting_retry"`
		InFlight      int `json:"in_flight"`
	}
	p.api("GET", "status", "", &s)
	return s.Pending + s.AwaitingRetry + s.InFlight
}

// settled waits until every event is delivered or a dead letter.
func (p *postern) settled(limit time.Duration) {
	p.t.Helper()
	p.eventually(limit, "every event to be delivered or a dead letter", func() bool { return p.waiting() == 0 })
}

// probe is the status of one of the probes.
func (p *postern) probe(path string) int {
	p.t.Helper()
	resp, err := client.Get(p.admin + path)
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// gauges compares metrics without labels.
func (p *postern) gauges(want map[string]float64) {
	p.t.Helper()
	for name, v := range want {
		if got := p.metric(name); got != v {
			p.t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
}

// metric sums the samples of one metric whose line contains every one of the given parts.
func (p *postern) metric(name string, parts ...string) float64 {
	p.t.Helper()
	resp, err := client.Get(p.admin + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	sum := 0.0
next:
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		var v float64
		fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v)
		sum += v
	}
	return sum
}

// metricIs waits until a metric has this value: what an event leads to is counted a moment after its state shows it.
func (p *postern) metricIs(want float64, name string, parts ...string) {
	p.t.Helper()
	p.eventually(patience, fmt.Sprintf("%s%v to be %v", name, parts, want), func() bool { return p.metric(name, parts...) == want })
}

// get is the body of a page of the admin listener.
func (p *postern) get(path string) string {
	p.t.Helper()
	resp, err := client.Get(p.admin + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}
