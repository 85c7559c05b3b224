package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"postern/proxy/admin"
	"postern/proxy/guard"
	"postern/spool"
)

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		says                     []string
	}{
		{"no such path", "GET", "/api/v1/nothing", "", 404, nil},
		{"no such path at all", "GET", "/favicon.ico", "", 404, nil},
		{"below a call", "GET", "/api/v1/status/x", "", 404, nil},
		{"wrong method", "POST", "/api/v1/status", "", 405, []string{"GET, HEAD"}},
		{"replay by GET", "GET", "/api/v1/dead-letters/replay", "", 405, []string{"POST"}},
		{"delete a list", "DELETE", "/api/v1/events", "", 405, nil},
		{"retry by GET", "GET", "/api/v1/events/evt_dead/retry", "", 405, []string{"POST"}},

		{"state", "GET", "/api/v1/events?state=dead", "", 400, []string{"state", "dead_letter", "in_flight"}},
		{"limit 0", "GET", "/api/v1/events?limit=0", "", 400, []string{"limit", "1 or more"}},
		{"limit no number", "GET", "/api/v1/events?limit=ten", "", 400, []string{"limit"}},
		{"cursor", "GET", "/api/v1/events?cursor=zzz", "", 400, []string{"cursor", "next_cursor"}},
		{"cursor of dead letters", "GET", "/api/v1/dead-letters?cursor=zzz", "", 400, []string{"cursor"}},
		{"unknown parameter", "GET", "/api/v1/events?sate=failed", "", 400, []string{"state, endpoint, limit, cursor"}},
		{"no parameters here", "GET", "/api/v1/status?x=1", "", 400, []string{"no query parameters"}},
		{"no parameters there", "POST", "/api/v1/dead-letters/purge?endpoint=partner-a", "{}", 400, []string{"no query parameters"}},
		{"parameters of endpoints", "GET", "/api/v1/endpoints?name=x", "", 400, nil},
		{"parameters of one endpoint", "GET", "/api/v1/endpoints/partner-a?x", "", 400, nil},
		{"parameters of replays", "GET", "/api/v1/dead-letters/replays?x", "", 400, nil},
		{"twice", "GET", "/api/v1/events?state=failed&state=pending", "", 400, []string{"state", "once"}},
		{"no query", "GET", "/api/v1/events?state=%zz", "", 400, []string{"Percent-encode"}},
		{"semicolon", "GET", "/api/v1/events?state=failed;limit=1", "", 400, []string{"Percent-encode"}},
		{"reveal", "GET", "/api/v1/events/evt_dead?reveal=yes", "", 400, []string{"reveal", "1 or 0"}},

		{"status", "GET", "/api/v1/dead-letters?status=5xx", "", 400, []string{"status", "100 to 999"}},
		{"status 0", "GET", "/api/v1/dead-letters?status=0", "", 400, []string{"status"}},
		{"status 1000", "GET", "/api/v1/dead-letters?status=1000", "", 400, []string{"status"}},
		{"error", "GET", "/api/v1/dead-letters?error=HTTP+503", "", 400, []string{"error", "http_503"}},
		{"since", "GET", "/api/v1/dead-letters?since=yesterday", "", 400, []string{"since", "RFC 3339", "24h"}},
		{"since in the future", "GET", "/api/v1/dead-letters?since=-1h", "", 400, []string{"since"}},
		{"until", "GET", "/api/v1/dead-letters?until=2026-01-01", "", 400, []string{"until"}},
		{"days", "GET", "/api/v1/dead-letters?since=99999d", "", 400, []string{"since", "7d"}},
		{"until before since", "GET", "/api/v1/dead-letters?since=1h&until=2h", "", 400, []string{"until", "before since"}},
		{"hours", "GET", "/api/v1/dead-letters/analysis?hours=0", "", 400, []string{"hours"}},
		{"hours beyond time", "GET", "/api/v1/dead-letters/analysis?hours=9999999999", "", 400, []string{"hours"}},
		{"analysis by endpoint", "GET", "/api/v1/dead-letters/analysis?endpoint=x", "", 400, []string{"hours"}},

		{"no event", "GET", "/api/v1/events/nobody", "", 404, []string{"no trace"}},
		{"retry nobody", "POST", "/api/v1/events/nobody/retry", "", 404, nil},
		{"delete nobody", "DELETE", "/api/v1/events/nobody", "", 404, nil},
		{"retry what is in flight", "POST", "/api/v1/events/evt_busy/retry", "", 409, []string{"running"}},
		{"delete what is in flight", "DELETE", "/api/v1/events/evt_busy", "", 409, nil},
		{"retry what was delivered", "POST", "/api/v1/events/evt_delivered/retry", "", 409, []string{"delivered"}},
		{"no endpoint", "GET", "/api/v1/endpoints/nobody", "", 404, []string{"URL-encoded", "urn:postern:problem:no-such-endpoint"}},
		{"pause no endpoint", "POST", "/api/v1/endpoints/nobody/pause", "", 404, nil},
		{"no name", "GET", "/api/v1/endpoints//pause", "", 404, nil},
		{"pause by GET", "GET", "/api/v1/endpoints/partner-a/pause", "", 405, []string{"POST"}},
		{"post to an endpoint", "POST", "/api/v1/endpoints/partner-a", "", 405, []string{"GET, HEAD"}},
		{"no replay", "GET", "/api/v1/dead-letters/replays/rpl_x", "", 404, nil},
		{"stop no replay", "DELETE", "/api/v1/dead-letters/replays/rpl_x", "", 404, nil},

		{"empty body", "POST", "/api/v1/dead-letters/replay", "", 400, []string{"empty", "{} selects all"}},
		{"blank body", "POST", "/api/v1/dead-letters/purge", " \n", 400, []string{"empty"}},
		{"no JSON", "POST", "/api/v1/dead-letters/purge", "endpoint=partner-a", 400, []string{"not JSON"}},
		{"a list", "POST", "/api/v1/dead-letters/purge", "[]", 400, nil},
		{"unknown field", "POST", "/api/v1/dead-letters/purge", `{"endpiont":"partner-a"}`, 400, []string{"endpoint, status"}},
		{"null", "POST", "/api/v1/dead-letters/purge", `null`, 400, []string{"no JSON object", "{} selects all"}},
		{"a text", "POST", "/api/v1/dead-letters/purge", `"{}"`, 400, []string{"no JSON object"}},
		{"empty endpoint", "POST", "/api/v1/dead-letters/purge", `{"endpoint":""}`, 400, []string{"endpoint", "empty", "Leave it out"}},
		{"empty error", "POST", "/api/v1/dead-letters/replay", `{"error":""}`, 400, []string{"error", "empty"}},
		{"empty since", "POST", "/api/v1/dead-letters/purge", `{"since":""}`, 400, []string{"since", "empty"}},
		{"empty rate", "POST", "/api/v1/dead-letters/replay", `{"rate":""}`, 400, []string{"rate", "empty"}},
		{"status 0 of a purge", "POST", "/api/v1/dead-letters/purge", `{"status":0}`, 400, []string{"status", "empty"}},
		{"status -0 of a purge", "POST", "/api/v1/dead-letters/purge", `{"status":-0}`, 400, []string{"status"}},
		{"null endpoint", "POST", "/api/v1/dead-letters/purge", `{"endpoint": null }`, 400, []string{"endpoint", "empty"}},
		{"null dry_run", "POST", "/api/v1/dead-letters/purge", `{"dry_run":null}`, 400, []string{"dry_run", "empty"}},
		{"null rate", "POST", "/api/v1/dead-letters/purge", `{"rate":null}`, 400, []string{"rate"}},
		{"field given twice", "POST", "/api/v1/dead-letters/purge", `{"endpoint":"partner-a","endpoint":"partner-b"}`, 400, []string{"endpoint", "twice"}},
		{"dry_run given twice", "POST", "/api/v1/dead-letters/purge", `{"dry_run":true,"dry\u005frun":false}`, 400, []string{"dry_run", "twice"}},
		{"field in another case", "POST", "/api/v1/dead-letters/purge", `{"dry_run":true,"DRY_RUN":false}`, 400, []string{"lower case"}},
		{"field with a long s", "POST", "/api/v1/dead-letters/purge", `{"ſtatus":503}`, 400, []string{"does not take"}},
		{"embedded name", "POST", "/api/v1/dead-letters/purge", `{"filter":{"endpoint":"partner-a"}}`, 400, []string{"does not take"}},
		{"wrong type", "POST", "/api/v1/dead-letters/purge", `{"status":"503"}`, 400, []string{"status", "wrong JSON type"}},
		{"two objects", "POST", "/api/v1/dead-letters/purge", `{"dry_run":true}{}`, 400, []string{"follows"}},
		{"bad filter", "POST", "/api/v1/dead-letters/purge", `{"since":"soon"}`, 400, []string{"since"}},
		{"rate of a purge", "POST", "/api/v1/dead-letters/purge", `{"rate":1}`, 400, []string{"rate"}},
		{"rate 0", "POST", "/api/v1/dead-letters/replay", `{"rate":0}`, 400, []string{"rate", "100/1m"}},
		{"rate below 0", "POST", "/api/v1/dead-letters/replay", `{"rate":-1}`, 400, []string{"rate"}},
		{"rate no number", "POST", "/api/v1/dead-letters/replay", `{"rate":"fast"}`, 400, []string{"rate"}},
		{"rate per nothing", "POST", "/api/v1/dead-letters/replay", `{"rate":"5/0s"}`, 400, []string{"rate"}},
		{"rate of a list", "POST", "/api/v1/dead-letters/replay", `{"rate":[1]}`, 400, []string{"rate"}},
		{"rate NaN", "POST", "/api/v1/dead-letters/replay", `{"rate":"NaN"}`, 400, []string{"rate"}},
		{"rate infinite", "POST", "/api/v1/dead-letters/replay", `{"rate":"Inf"}`, 400, []string{"rate"}},
		{"too large", "POST", "/api/v1/dead-letters/replay", `{"endpoint":"` + strings.Repeat("x", 70_000) + `"}`, 413, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			w := r.do(tc.method, tc.path, tc.body)
			r.refused(w, tc.status, tc.says...)
			if tc.status == 405 && w.Header().Get("Allow") == "" {
				t.Error("a 405 without Allow (RFC 9110, section 15.5.6)")
			}
			if got := r.spool.made(); len(got) > 0 || len(r.endpoints.calls) > 0 {
				t.Errorf("refused, and yet: %v %v", got, r.endpoints.calls)
			}
		})
	}
}

// TestSpoolErrors goes through everything that a change can meet.
func TestSpoolErrors(t *testing.T) {
	for _, tc := range []struct {
		err        error
		status     int
		retryAfter bool
	}{
		{spool.ErrNotFound, 404, false},
		{spool.ErrBusy, 409, true},
		{spool.ErrDelivered, 409, false},
		{spool.ErrFull, 503, true},
		{spool.ErrUnwritable, 503, true},
		{spool.ErrUnknownOutcome, 503, true},
		{spool.ErrClosed, 503, true},
		{errors.New("disk: " + secretBody), 500, false},
	} {
		t.Run(tc.err.Error(), func(t *testing.T) {
			r := newRig(t)
			r.spool.fail = fmt.Errorf("retry: %w", tc.err)
			r.endpoints.fail = tc.err
			for _, path := range []string{"/api/v1/events/evt_dead/retry", "/api/v1/endpoints/partner-a/resume"} {
				w := r.do("POST", path, "")
				r.refused(w, tc.status)
				if got := w.Header().Get("Retry-After") != ""; got != tc.retryAfter {
					t.Errorf("%s: Retry-After is there: %v", path, got)
				}
				if strings.Contains(w.Body.String(), secretBody) {
					t.Errorf("%s: the text of an unknown error shows: %s", path, w.Body)
				}
			}
			if logged := strings.Contains(r.log.String(), "an admin call failed"); logged != (tc.status == 500) {
				t.Errorf("logged: %v\n%s", logged, r.log)
			}
		})
	}
}

// everyRoute has one request for each route, with a body that is accepted.
var everyRoute = []struct{ method, path, body string }{
	{"GET", "/", ""}, {"GET", "/healthz", ""}, {"GET", "/readyz", ""}, {"GET", "/metrics", ""},
	{"GET", "/api/v1/status", ""}, {"GET", "/api/v1/activity", ""}, {"GET", "/api/v1/latency?hours=2", ""}, {"GET", "/api/v1/endpoints/partner-a/latency", ""},
	{"GET", "/api/v1/events", ""}, {"GET", "/api/v1/events/evt_dead", ""}, {"GET", "/api/v1/events/evt_dead?reveal=1", ""},
	{"POST", "/api/v1/events/evt_dead/retry", ""}, {"DELETE", "/api/v1/events/evt_dead", ""},
	{"GET", "/api/v1/endpoints", ""}, {"GET", "/api/v1/endpoints/partner-a", ""},
	{"POST", "/api/v1/endpoints/partner-a/pause", ""}, {"POST", "/api/v1/endpoints/partner-a/resume", ""},
	{"POST", "/api/v1/endpoints/partner-a/reset", ""},
	{"GET", "/api/v1/dead-letters", ""}, {"GET", "/api/v1/dead-letters/analysis", ""},
	{"POST", "/api/v1/dead-letters/replay", "{}"}, {"POST", "/api/v1/dead-letters/replay", `{"rate":1}`},
	{"POST", "/api/v1/dead-letters/purge", "{}"}, {"POST", "/api/v1/dead-letters/purge", `{"ids":["evt_dead"]}`},
	{"GET", "/api/v1/dead-letters/replays", ""}, {"GET", "/api/v1/dead-letters/replays/x", ""},
	{"DELETE", "/api/v1/dead-letters/replays/x", ""},
	{"GET", "/api/v1/spool/keys", ""}, {"GET", "/api/v1/sync/refused", ""}, {"POST", "/api/v1/sync/retry", ""},
	{"GET", "/debug/pprof/", ""}, {"GET", "/debug/pprof/heap", ""}, {"GET", "/debug/pprof/goroutine", ""},
	{"OPTIONS", "/api/v1/status", ""}, {"GET", "/nothing", ""},
}

func TestPagesOfOtherSitesReachNothing(t *testing.T) {
	for _, foreign := range []string{
		"Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Host: evil.example",
	} {
		r := newRig(t)
		for _, route := range everyRoute {
			w := r.do(route.method, route.path, route.body, foreign)
			r.refused(w, 403)
			// The form that a browser sends to a proxy is no way around it.
			if strings.HasPrefix(foreign, "Host") {
				r.refused(r.do(route.method, "http://evil.example"+route.path, route.body, foreign), 403)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s invites other sites", route.method, route.path)
			}
		}
		if got := r.spool.made(); len(got) > 0 || len(r.endpoints.calls) > 0 {
			t.Errorf("%s: refused, and yet: %v %v", foreign, got, r.endpoints.calls)
		}
	}
}

func TestTokenIsAskedForOnEveryRoute(t *testing.T) {
	r := newRig(t, func(p *admin.Parts) {
		p.Guard = guard.New(guard.Config{Tokens: func() [][]byte { return [][]byte{[]byte("tok")} }})
	})
	for _, route := range everyRoute {
		r.refused(r.do(route.method, route.path, route.body), 401)
	}
	if w := r.do("GET", "/api/v1/status", "", "Authorization: Bearer tok", "Host: postern.internal"); w.Code != 200 {
		t.Errorf("with the token: %d", w.Code)
	}
}

func TestEveryAnswerHasTheSafetyHeaders(t *testing.T) {
	r := newRig(t)
	for _, route := range everyRoute {
		header := r.do(route.method, route.path, route.body).Header()
		for name, want := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"Cache-Control":                "no-store",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", route.method, route.path, name, got)
			}
		}
		if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s %s: Content-Security-Policy %q", route.method, route.path, csp)
		}
	}
}
