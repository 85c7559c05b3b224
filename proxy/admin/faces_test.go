package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/proxy/admin"
	"postern/proxy/guard"
)

func TestEndpointNamesWithSlashes(t *testing.T) {
	const name = "https://other.example:8443"
	for _, spelling := range []string{
		"https%3A%2F%2Fother.example%3A8443", "https%3a%2f%2fother.example%3a8443", "https://other.example:8443",
		"https:/other.example:8443", "HTTPS%3A%2F%2FOther.Example%3A8443", "https:%2F%2Fother.example:8443%2F",
	} {
		r := newRig(t)
		w := r.do("GET", "/api/v1/endpoints/"+spelling, "")
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"`+name+`"`) {
			t.Errorf("GET %s: %d %s", spelling, w.Code, w.Body)
		}
		for _, action := range []string{"pause", "resume", "reset"} {
			if w := r.do("POST", "/api/v1/endpoints/"+spelling+"/"+action, ""); w.Code != 200 {
				t.Errorf("POST %s/%s: %d %s", spelling, action, w.Code, w.Body)
			}
		}
		if want := []string{"pause " + name, "resume " + name, "reset " + name}; !slices.Equal(r.endpoints.calls, want) {
			t.Errorf("%s: calls %v, want %v", spelling, r.endpoints.calls, want)
		}
		if !strings.Contains(r.log.String(), "paused by hand") {
			t.Error("an action by hand is not in the log")
		}
	}
}

func TestEndpointFilterTakesEverySpelling(t *testing.T) {
	r := newRig(t)
	w := r.do("GET", "/api/v1/events?endpoint=HTTPS://Other.example:8443/", "")
	if n := strings.Count(w.Body.String(), `"id"`); n != 2 {
		t.Errorf("%d events, want 2: %s", n, w.Body)
	}
}

func TestHEAD(t *testing.T) {
	r := newRig(t)
	server := httptest.NewServer(r.handler)
	defer server.Close()
	for _, route := range everyRoute {
		if route.method != "GET" || strings.Contains(route.path, "replays") || strings.HasPrefix(route.path, "/debug/") || route.path == "/nothing" {
			continue
		}
		resp, err := http.Head(server.URL + route.path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || resp.ContentLength <= 0 {
			t.Errorf("HEAD %s: %d, Content-Length %d", route.path, resp.StatusCode, resp.ContentLength)
		}
	}
}

func TestProbes(t *testing.T) {
	var reasons []string
	ready := func() []string { return reasons }
	m := &fakeMetrics{}
	r := newRig(t, func(p *admin.Parts) { p.Ready, p.Metrics = ready, m })
	small := admin.NewProbes(guard.New(guard.Config{AnyHost: true}), ready, m)
	faces := map[string]func(path string) *httptest.ResponseRecorder{
		"admin": func(path string) *httptest.ResponseRecorder { return r.do("GET", path, "") },
		"probes": func(path string) *httptest.ResponseRecorder {
			w, req := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
			req.Host = "10.1.2.3:9464"
			small.ServeHTTP(w, req)
			return w
		},
	}
	for name, get := range faces {
		t.Run(name, func(t *testing.T) {
			reasons, m.err = nil, nil
			if w := get("/healthz"); w.Code != 200 || w.Body.String() != "ok\n" {
				t.Errorf("healthz: %d %s", w.Code, w.Body)
			}
			r.want(get("/readyz"), 200, `{"ready":true,"reasons":[]}`)
			reasons = []string{"the spool is full", "Postern is stopping"}
			r.want(get("/readyz"), 503, `{"ready":false,"reasons":["the spool is full","Postern is stopping"]}`)
			if w := get("/healthz"); w.Code != 200 {
				t.Errorf("healthz while not ready: %d", w.Code)
			}
			w := get("/metrics")
			if w.Code != 200 || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" ||
				w.Body.String() != "postern_accepted_total{endpoint=\"partner-a\"} 1\n" {
				t.Errorf("metrics: %d %v %s", w.Code, w.Header(), w.Body)
			}
			m.err = errors.New("the client has gone")
			func() {
				defer func() {
					if recover() != http.ErrAbortHandler {
						t.Error("a page that breaks off ends like a whole one")
					}
				}()
				get("/metrics")
			}()
		})
	}
	for _, path := range []string{"/", "/api/v1/status", "/api/v1/events", "/api/v1/endpoints/partner-a"} {
		if w := faces["probes"](path); w.Code != 404 {
			t.Errorf("the probes listener answers %d to %s", w.Code, path)
		}
	}
}

func TestStartPage(t *testing.T) {
	r := newRig(t)
	w := r.do("GET", "/", "")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	// The page's policy allows neither scripts nor styles, so it must have none, and every link must lead somewhere.
	if regexp.MustCompile(`(?i)<(script|style|form|img|link)|style=|\son\w+=`).MatchString(w.Body.String()) {
		t.Error("the page has something that its Content-Security-Policy forbids")
	}
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1)
	if len(links) < 7 {
		t.Fatalf("only %d links", len(links))
	}
	for _, link := range links {
		if w := r.do("GET", link[1], ""); w.Code != 200 {
			t.Errorf("the page links to %s, which answers %d", link[1], w.Code)
		}
	}
}

// TestAnotherPageCanBeServed: it and what is below /ui/ come without a token, and not to a page of another site.
func TestAnotherPageCanBeServed(t *testing.T) {
	r := newRig(t, func(p *admin.Parts) {
		p.Guard = guard.New(guard.Config{Tokens: func() [][]byte { return [][]byte{[]byte("tok")} }})
		p.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
			w.WriteHeader(http.StatusTeapot)
		})
	})
	for _, path := range []string{"/", "/ui/main.js", "/ui/"} {
		if w := r.do("GET", path, ""); w.Code != http.StatusTeapot || w.Header().Get("Content-Security-Policy") != "default-src 'self'" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		r.refused(r.do("GET", path, "", "Origin: https://evil.example"), 403)
		r.refused(r.do("POST", path, "", "Authorization: Bearer tok"), 405)
	}
	for _, path := range []string{"/ui", "//ui/", "/./ui/", "/elsewhere", "/api/v1/status"} {
		r.refused(r.do("GET", path, ""), 401)
	}
	r.refused(r.do("GET", "/elsewhere", "", "Authorization: Bearer tok"), 404)
}

// TestClientsThatLeft sees that a call whose client is gone does not go on reading.
func TestClientsThatLeft(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []struct{ method, path, body string }{
		{"GET", "/api/v1/dead-letters/analysis", ""},
		{"POST", "/api/v1/dead-letters/replay", "{}"},
		{"POST", "/api/v1/dead-letters/purge", "{}"},
	} {
		w := r.doCtx(ctx, call.method, call.path, call.body)
		r.refused(w, 499, "client")
		if strings.Contains(w.Body.String(), "stopping") {
			t.Errorf("%s %s: %s", call.method, call.path, w.Body)
		}
	}
	if got := r.spool.made(); len(got) > 0 {
		t.Errorf("done for nobody: %v", got)
	}
}

// FuzzQuery and FuzzBody: whatever comes, the answer is one of those that are documented, and nothing is changed by
// what is refused.
func FuzzQuery(f *testing.F) {
	for _, call := range calls {
		if path, query, ok := strings.Cut(call.path, "?"); ok {
			f.Add(path, query)
		}
	}
	f.Add("dead-letters", "since=%31d&until=2000-01-01T00:00:00 01:00&status=-0")
	f.Add("endpoints/https:////x/pause", "")
	f.Fuzz(func(t *testing.T, path, query string) {
		if path == "stream" && query == "" {
			return // it lasts until the client leaves
		}
		req := httptest.NewRequest("GET", "/", nil)
		req.URL.Path, req.URL.RawQuery, req.Host = "/api/v1/"+path, query, "localhost"
		r := newRig(t)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		if !slices.Contains([]int{200, 301, 307, 400, 404, 405}, w.Code) {
			t.Fatalf("%q?%q: %d %s", path, query, w.Code, w.Body)
		}
		if got := r.spool.made(); len(got) > 0 {
			t.Errorf("a GET changed something: %v", got)
		}
	})
}

func FuzzBody(f *testing.F) {
	f.Add(`{}`)
	f.Add(`{"endpoint":"partner-a","status":503,"error":"http_503","since":"24h","until":"1h","dry_run":false,"rate":"100/1m"}`)
	f.Add(`{"rate":1e-400}`)
	f.Fuzz(func(t *testing.T, body string) {
		r := newRig(t)
		w := r.do("POST", "/api/v1/dead-letters/replay", body)
		if !slices.Contains([]int{200, 202, 400, 413}, w.Code) {
			t.Fatalf("%q: %d %s", body, w.Code, w.Body)
		}
		if got := r.spool.made(); w.Code >= 400 && len(got) > 0 {
			t.Errorf("refused, and yet: %v", got)
		}
	})
}
