package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// patientRetries keeps a failed event waiting for as long as a test looks at it.
const patientRetries = "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 2, base_delay: 1h, max_delay: 1h } }\n"

// later is a failure after which the next attempt is an hour away: the delay alone is anything from nothing on.
var later = reply{Status: 503, Header: map[string]string{"Retry-After": "3600"}}

// Retry by a person: now, with the same ID, numbers that go on, and a budget that begins anew; whatever the event waits for.
func TestRetryByHand(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(later))
	p := startPostern(t, patientRetries)
	failed := p.accept("POST", "/"+r.url("/failed"), "body", "Postern-Event-Id: mine")
	p.waitState(failed, "failed", patience)
	if code := p.api("POST", "events/"+failed+"/retry", "", nil); code >= 300 {
		t.Fatalf("retry: status %d", code)
	}
	q := r.wait(2, patience)[1]
	if q.eventID() != "mine" || q.Header.Get("Postern-Attempt") != "2" || string(q.Body) != "body" {
		t.Errorf("retried as %s attempt %s with body %q", q.eventID(), q.Header.Get("Postern-Attempt"), q.Body)
	}
	var e event
	p.eventually(patience, "the second attempt to be recorded", func() bool {
		p.api("GET", "events/"+failed, "", &e)
		return e.AttemptCount == 2
	})
	if e.State != "failed" || e.Charged != 1 { // the budget of two began anew with this attempt
		t.Errorf("after a retry by hand: %s with %d attempts charged; want failed with 1", e.State, e.Charged)
	}

	pending := p.accept("POST", "/"+r.url("/pending"), "x", "Postern-Delay: 1h")
	p.api("POST", "events/"+pending+"/retry", "", nil)
	r.wait(3, patience)

	dead := p.accept("POST", "/"+r.url("/dead"), "x", "Postern-Max-Attempts: 1", "Postern-Ttl: 1h")
	p.waitState(dead, "dead_letter", patience)
	r.setAnswer(nil)
	p.api("POST", "events/"+dead+"/retry", "", nil)
	if e := p.waitState(dead, "delivered", patience); len(e.Attempts) != 2 || e.Attempts[1].Number != 2 {
		t.Errorf("a dead letter retried: %+v", e.Attempts)
	}
	if code := p.api("POST", "events/"+dead+"/retry", "", nil); code != 409 {
		t.Errorf("retry of a delivered event: status %d, want 409", code)
	}
	if code := p.api("POST", "events/nobody/retry", "", nil); code != 404 {
		t.Errorf("retry of no event: status %d, want 404", code)
	}
}

func TestDeleteEvents(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(later))
	p := startPostern(t, patientRetries)
	waiting := p.accept("POST", "/"+r.url("/"), "x", "Postern-Delay: 1h")
	failed := p.accept("POST", "/"+r.url("/"), "x")
	p.waitState(failed, "failed", patience)
	dead := p.accept("POST", "/"+r.url("/"), "x", "Postern-Max-Attempts: 1")
	p.waitState(dead, "dead_letter", patience)
	for _, id := range []string{waiting, failed, dead} {
		if code := p.api("DELETE", "events/"+id, "", nil); code >= 300 {
			t.Errorf("delete: status %d", code)
		}
		if code := p.api("GET", "events/"+id, "", nil); code != 404 {
			t.Errorf("a deleted event: status %d, want 404", code)
		}
	}
	if n := p.waiting(); n != 0 {
		t.Errorf("%d events are left", n)
	}
	p.metricIs(0, "postern_events", `state="dead_letter"`)
	// A running attempt is not pulled from under its receiver.
	hanging := newReceiver(t, script(reply{Hang: true}))
	busy := p.accept("POST", "/"+hanging.url("/"), "x")
	hanging.wait(1, patience)
	if code := p.api("DELETE", "events/"+busy, "", nil); code != 409 {
		t.Errorf("delete in flight: status %d, want 409", code)
	}
	if e := p.waitState(busy, "in_flight", patience); e.AttemptCount != 0 {
		t.Errorf("in flight with %d attempts", e.AttemptCount)
	}
}

// Lists: by state and endpoint, newest first, page by page; nothing twice and nothing lost.
func TestEventLists(t *testing.T) {
	t.Parallel()
	r, bad := newReceiver(t, nil), newReceiver(t, script(status(400)))
	p := startPostern(t, calm)
	want := map[string]bool{}
	for i := range 25 {
		want[p.accept("POST", "/"+r.url("/x?i="+fmt.Sprint(i)), "x", "Postern-Delay: 1h")] = true
	}
	p.waitState(p.accept("POST", "/"+bad.url("/"), "x"), "dead_letter", patience)
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	seen, cursor, pages := map[string]bool{}, "", 0
	for {
		var page struct {
			Events []event
			Next   string `json:"next_cursor"`
		}
		p.api("GET", "events?state=pending&limit=10&cursor="+url.QueryEscape(cursor), "", &page)
		for _, e := range page.Events {
			if seen[e.ID] || !want[e.ID] || e.State != "pending" || e.Endpoint != "http://"+r.addr() || e.URL != "http://"+r.addr() {
				t.Errorf("in the list: %+v", e)
			}
			seen[e.ID] = true
		}
		pages++
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 25 || pages != 3 {
		t.Errorf("%d events on %d pages, want 25 on 3", len(seen), pages)
	}
	for query, n := range map[string]int{
		"state=dead_letter": 1, "state=delivered": 1, "state=failed": 0, "endpoint=http://" + r.addr(): 26, "endpoint=HTTP://" + bad.addr() + "/": 1,
		"endpoint=http://nobody.example": 0, "limit=1000": 27, "limit=100000": 27,
	} {
		var page struct{ Events []event }
		if code := p.api("GET", "events?"+query, "", &page); code != 200 || len(page.Events) != n {
			t.Errorf("%s: status %d, %d events, want %d", query, code, len(page.Events), n)
		}
	}
	for _, query := range []string{"state=lost", "limit=0", "limit=x", "cursor=made-up", "cursor=zzz", "what=1"} {
		if code := p.api("GET", "events?"+query, "", nil); code != 400 {
			t.Errorf("%s: status %d, want 400", query, code)
		}
	}
}

// What waits in memory behind a slow receiver is not in flight: lists, single events and counts say the same.
func TestListsBehindASlowReceiver(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(later, later, later, reply{Hang: true}))
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { timeout: 10m, concurrency: 1, "+patient+" }\n")
	var id string
	for range 3 {
		id = p.accept("POST", "/"+r.url("/"), "x")
	}
	r.wait(3, patience)
	p.waitState(id, "failed", patience)
	if code := p.api("POST", "events/"+id+"/retry", "", nil); code >= 300 {
		t.Fatalf("retry: status %d", code)
	}
	r.wait(4, patience)
	for range 2 {
		p.accept("POST", "/"+r.url("/"), "x")
	}
	var s struct {
		Pending  int `json:"pending"`
		Failed   int `json:"awaiting_retry"`
		InFlight int `json:"in_flight"`
	}
	p.api("GET", "status", "", &s)
	for state, want := range map[string][2]int{"pending": {2, s.Pending}, "failed": {2, s.Failed}, "in_flight": {1, s.InFlight}} {
		var page struct{ Events []event }
		p.api("GET", "events?state="+state, "", &page)
		if len(page.Events) != want[0] || want[1] != want[0] {
			t.Errorf("%d events are listed as %s and %d counted, want %d", len(page.Events), state, want[1], want[0])
		}
		for _, e := range page.Events {
			if e.State != state {
				t.Errorf("%s is listed as %s", e.State, state)
			}
			p.waitState(e.ID, state, patience)
		}
	}
}

// The words and types of GET status and GET events/{id} are what dashboards are written against.
func TestShapesOfTheAPI(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(503), status(200)))
	p := startPostern(t, calm)
	var empty map[string]any
	p.api("GET", "status", "", &empty)
	if v, ok := empty["oldest_pending"]; !ok || v != nil {
		t.Errorf("oldest_pending of an empty spool: %v", v)
	}
	id := p.accept("PUT", "/"+r.url("/path?q=1"), "body", "X-One: 1")
	p.waitState(id, "delivered", patience)
	p.accept("POST", "/"+r.url("/"), "x", "Postern-Delay: 1h")
	var got map[string]any
	p.eventually(patience, "the last hour to be counted", func() bool {
		p.api("GET", "status", "", &got)
		return got["delivered_last_hour"] == 1.0 && got["failed_last_hour"] == 1.0
	})
	for key, want := range map[string]any{"pending": 1.0, "awaiting_retry": 0.0, "in_flight": 0.0, "dead_letter": 0.0, "delivered_last_hour": 1.0, "failed_last_hour": 1.0} {
		if got[key] != want {
			t.Errorf("status %s: %v, want %v", key, got[key], want)
		}
	}
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(got["oldest_pending"])); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("oldest_pending: %v", got["oldest_pending"])
	}
	if n, ok := got["spool_bytes"].(float64); !ok || n <= 0 {
		t.Errorf("spool_bytes: %v", got["spool_bytes"])
	}
	if n, ok := got["avg_delivery_ms_last_hour"].(float64); !ok || n <= 0 || n > 60_000 {
		t.Errorf("avg_delivery_ms_last_hour: %v", got["avg_delivery_ms_last_hour"])
	}
	var e map[string]any
	p.api("GET", "events/"+id, "", &e)
	attempts, _ := e["attempts"].([]any)
	if len(attempts) != 2 || e["method"] != "PUT" {
		t.Fatalf("event: %v", e)
	}
	first, second := attempts[0].(map[string]any), attempts[1].(map[string]any)
	if first["number"] != 1.0 || first["status_code"] != 503.0 || first["error"] != "http_503" || second["status_code"] != 200.0 || second["error"] != nil {
		t.Errorf("attempts: %v", attempts)
	}
	if _, err := time.Parse(time.RFC3339, fmt.Sprint(first["started_at"])); err != nil {
		t.Errorf("started_at: %v", err)
	}
	if ms, ok := first["duration_ms"].(float64); !ok || ms <= 0 || ms > 60_000 {
		t.Errorf("duration_ms: %v", first["duration_ms"])
	}
	for _, key := range []string{"target", "headers", "body", "answer"} {
		if _, shown := e[key]; shown {
			t.Errorf("%s shows without reveal", key)
		}
	}
}

func TestRevealShowsTheRequest(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	target := r.url("/path?q=SECRET")
	text := p.reveal(p.accept("POST", "/"+target, "body", "X-One: 1", "X-Two: a", "X-Two: b", "Postern-Delay: 1h"))
	if text.Target != target || text.Body != "body" || text.BodyEncoding != "utf-8" {
		t.Errorf("revealed: %+v", text)
	}
	var twos []string
	for _, h := range text.Headers {
		if strings.EqualFold(h.Name, "X-Two") {
			twos = append(twos, h.Value)
		}
	}
	if fmt.Sprint(twos) != "[a b]" {
		t.Errorf("headers: %+v", text.Headers)
	}
	bytes := p.reveal(p.accept("POST", "/"+target, "\xff\xfe\x00", "Postern-Delay: 1h"))
	if bytes.Body != "//4A" || bytes.BodyEncoding != "base64" {
		t.Errorf("bytes: %q as %s", bytes.Body, bytes.BodyEncoding)
	}
}
