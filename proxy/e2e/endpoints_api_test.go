package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// endpointView is an endpoint as the API shows it.
type endpointView struct {
	Name    string
	URL     string
	Paused  bool
	Breaker struct {
		State    string
		Failures int     `json:"consecutive_failures"`
		OpenedAt *string `json:"opened_at"`
		Cooldown float64 `json:"cooldown_seconds"`
	}
	Queue struct {
		Pending    int
		Waiting    int `json:"awaiting_retry"`
		InFlight   int `json:"in_flight"`
		DeadLetter int `json:"dead_letter"`
	}
	P50     *float64 `json:"p50_ms"`
	P95     *float64 `json:"p95_ms"`
	P99     *float64 `json:"p99_ms"`
	Samples int      `json:"sample_count"`
}

func (p *postern) endpoint(name string) endpointView {
	p.t.Helper()
	var v endpointView
	if code := p.api("GET", "endpoints/"+name, "", &v); code != 200 {
		p.t.Fatalf("GET endpoints/%s: status %d", name, code)
	}
	return v
}

// The name of an ad hoc endpoint has slashes: it works as it is and percent-encoded, for showing and for acting.
func TestPauseResumeOfAnOrigin(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	origin := "http://" + r.addr()
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	for i, name := range []string{origin, url.PathEscape(origin)} {
		if code := p.api("POST", "endpoints/"+name+"/pause", "", nil); code >= 300 {
			t.Fatalf("pause %s: status %d", name, code)
		}
		id := p.accept("POST", "/"+r.url("/"), "x")
		v := p.endpoint(name)
		if v.Name != origin || !v.Paused || v.Queue.Pending != 1 {
			t.Errorf("paused: %+v", v)
		}
		p.waitState(id, "pending", patience)
		if code := p.api("POST", "endpoints/"+name+"/resume", "", nil); code >= 300 {
			t.Fatalf("resume %s: status %d", name, code)
		}
		p.waitState(id, "delivered", patience)
		if n := len(r.requests()); n != i+2 {
			t.Errorf("%d requests, want %d", n, i+2)
		}
	}
	p.eventually(patience, "three samples", func() bool { return p.endpoint(origin).Samples == 3 })
	if v := p.endpoint(origin); v.P50 == nil || v.P95 == nil || v.P99 == nil || *v.P50 > *v.P99 {
		t.Errorf("latencies: %+v", v)
	}
	for path, want := range map[string]int{
		"GET endpoints/nobody": 404, "POST endpoints/nobody/pause": 404, "POST endpoints/" + origin + "/explode": 404, "GET endpoints/" + origin + "/pause": 405,
		"POST endpoints/" + origin: 405,
	} {
		method, path, _ := strings.Cut(path, " ")
		if code := p.api(method, path, "", nil); code != want && !(want == 404 && code == 405) {
			t.Errorf("%s %s: status %d, want %d", method, path, code, want)
		}
	}
}

func TestResetClosesTheBreaker(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(status(500)))
	p := startPostern(t, fmt.Sprintf("defaults: { retry: { max_attempts: 9, base_delay: 10ms, max_delay: 20ms }, breaker: { failure_threshold: 2, slow_failure_threshold: 2, cooldown: 1h, max_cooldown: 2h } }\nendpoints:\n  - { name: partner, url: %q }\n", r.url("/")))
	id := p.accept("POST", "/to/partner", "x")
	p.eventually(patience, "the breaker to open", func() bool { return p.endpoint("partner").Breaker.State == "open" })
	if v := p.endpoint("partner"); v.Breaker.Failures != 2 || v.Breaker.Cooldown != 3600 || v.Breaker.OpenedAt == nil || v.Queue.Waiting != 1 {
		t.Errorf("open: %+v", v)
	}
	r.setAnswer(nil)
	if code := p.api("POST", "endpoints/partner/reset", "", nil); code >= 300 {
		t.Fatalf("reset: status %d", code)
	}
	p.waitState(id, "delivered", patience)
	if v := p.endpoint("partner"); v.Breaker.State != "closed" || v.Breaker.Failures != 0 {
		t.Errorf("after a reset: %+v", v)
	}
}

// Configured endpoints are listed before anything was sent, their url without its query; ad hoc ones by their origin in
// its shortest form, however it is written.
func TestEndpointList(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	_, port, _ := strings.Cut(r.addr(), ":")
	p := startPostern(t, calm+"endpoints:\n  - { name: quiet, url: \"https://u:SECRET1@partner.example/pb?aff=SECRET2\" }\n")
	for _, target := range []string{"http://LOCALHOST:" + port + "/a?x=1", "http://localhost:" + port + "/b", "HTTP://localhost:" + port, "http://localhost.:" + port + "/"} {
		p.accept("POST", "/", "x", "Postern-Url: "+target)
	}
	p.accept("POST", "/", "x", "Postern-Url: http://Some.invalid:80/x", "Postern-Delay: 1h")
	p.settledBut(1, patience)
	var list struct{ Endpoints []endpointView }
	p.api("GET", "endpoints", "", &list)
	names := map[string]endpointView{}
	for _, v := range list.Endpoints {
		names[v.Name] = v
	}
	if v, ok := names["quiet"]; !ok || v.URL != "https://partner.example/pb" || v.Breaker.State != "closed" {
		t.Errorf("the configured endpoint: %+v", v)
	}
	if _, ok := names["http://localhost:"+port]; !ok {
		t.Errorf("endpoints: %v", names)
	}
	if _, ok := names["http://some.invalid"]; !ok {
		t.Errorf("endpoints: %v", names)
	}
	if len(names) > 4 {
		t.Errorf("%d endpoints: %v", len(names), names)
	}
}

// settledBut waits until only n events are left that are neither delivered nor dead letters.
func (p *postern) settledBut(n int, limit time.Duration) {
	p.t.Helper()
	p.eventually(limit, fmt.Sprintf("all but %d events to be settled", n), func() bool { return p.waiting() == n })
}

// A page of another site reads nothing and does nothing, on any face.
func TestForeignPagesOnAdmin(t *testing.T) {
	t.Parallel()
	p := startPostern(t, calm)
	do := func(method, path, host string, headers map[string]string) int {
		req, err := http.NewRequest(method, p.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		for k, v := range headers {
			req.Header.Set(k, v)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/events"} {
		for name, c := range map[string]struct {
			host    string
			headers map[string]string
			want    int
		}{
			"foreign host":         {"evil.example", nil, 403},
			"rebound host":         {"evil.example:8090", nil, 403},
			"foreign origin":       {"", map[string]string{"Origin": "https://evil.example"}, 403},
			"null origin":          {"", map[string]string{"Origin": "null"}, 403},
			"cross-site":           {"", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
			"same origin":          {"", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": p.admin}, 200},
			"localhost, own port":  {"localhost", nil, 200},
			"localhost, any port":  {"localhost:1", nil, 200},
			"typed in the browser": {"", map[string]string{"Sec-Fetch-Site": "none"}, 200},
		} {
			if got := do("GET", path, c.host, c.headers); got != c.want {
				t.Errorf("%s of %s: status %d, want %d", path, name, got, c.want)
			}
		}
	}
	if got := do("POST", "/api/v1/dead-letters/purge", "", map[string]string{"Origin": "https://evil.example"}); got != 403 {
		t.Errorf("purge by a foreign page: status %d", got)
	}
}
