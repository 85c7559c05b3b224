package admin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/admin"
)

// calls are the answers of the API, each to be found in testdata under its name.
var calls = []struct{ name, method, path, body string }{
	{"status", "GET", "status", ""},
	{"events", "GET", "events", ""},
	{"events-page", "GET", "events?limit=2&cursor=1", ""},
	{"events-filtered", "GET", "events?state=dead_letter&endpoint=partner-a", ""},
	{"events-none", "GET", "events?endpoint=nobody", ""},
	{"event-delivered", "GET", "events/evt_delivered", ""},
	{"event-dead", "GET", "events/evt_dead", ""},
	{"event-expired", "GET", "events/evt_expired", ""},
	{"event-in-flight", "GET", "events/evt_busy", ""},
	{"event-odd-id", "GET", "events/evt%3Ap.1-_?reveal=0", ""},
	{"event-revealed", "GET", "events/evt_dead?reveal=1", ""},
	{"event-revealed-delivered", "GET", "events/evt_delivered?reveal=true", ""},
	{"event-retry", "POST", "events/evt_dead/retry", ""},
	{"event-delete", "DELETE", "events/evt_failed", ""},
	{"endpoints", "GET", "endpoints", ""},
	{"endpoint", "GET", "endpoints/partner-a", ""},
	{"endpoint-ad-hoc", "GET", "endpoints/https%3A%2F%2Fother.example%3A8443", ""},
	{"endpoint-pause", "POST", "endpoints/partner-a/pause", ""},
	{"dead-letters", "GET", "dead-letters", ""},
	{"dead-letters-filtered", "GET", "dead-letters?endpoint=partner-a&status=503&error=http_503&since=1999-12-31T23:00:00%2B01:00&until=1h30m", ""},
	{"analysis", "GET", "dead-letters/analysis", ""},
	{"analysis-none", "GET", "dead-letters/analysis?hours=1", ""},
	{"replay-dry-run", "POST", "dead-letters/replay", `{"dry_run":true}`},
	{"replay", "POST", "dead-letters/replay", `{"endpoint":"partner-a"}`},
	{"replays-none", "GET", "dead-letters/replays", ""},
	{"purge-dry-run", "POST", "dead-letters/purge", `{"dry_run":true,"since":"3h","until":"1999-12-31T22:30:00Z"}`},
	{"purge", "POST", "dead-letters/purge", `{}`},
}

// TestAnswers compares every answer with its golden file, whole. UPDATE_GOLDEN=1 writes them anew.
func TestAnswers(t *testing.T) {
	for _, call := range calls {
		t.Run(call.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				w := r.do(call.method, "/api/v1/"+call.path, call.body)
				if w.Code != 200 {
					t.Fatalf("status %d: %s", w.Code, w.Body)
				}
				if got := w.Header().Get("Content-Type"); got != "application/json" {
					t.Errorf("Content-Type %s", got)
				}
				var indented bytes.Buffer
				if err := json.Indent(&indented, w.Body.Bytes(), "", "  "); err != nil {
					t.Fatal(err)
				}
				golden(t, call.name, indented.Bytes())
			})
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s:\n%s", path, got)
	}
}

// TestOnlyRevealShowsSecrets goes through every answer and the log.
func TestOnlyRevealShowsSecrets(t *testing.T) {
	secrets := []string{secretQuery, secretUser, secretHeader, secretBody, secretPath}
	r := newRig(t)
	for _, call := range calls {
		text := r.do(call.method, "/api/v1/"+call.path, call.body).Body.String()
		for _, secret := range secrets {
			if strings.Contains(text, secret) && !strings.HasPrefix(call.name, "event-revealed") {
				t.Errorf("%s shows %s", call.name, secret)
			}
		}
	}
	for _, secret := range secrets {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log shows %s:\n%s", secret, r.log)
		}
	}
}

func TestRevealIsLogged(t *testing.T) {
	r := newRig(t)
	r.do("GET", "/api/v1/events/evt_dead", "")
	r.do("GET", "/api/v1/events/nobody?reveal=1", "")
	if got := r.log.String(); got != "" {
		t.Errorf("logged without a reveal: %s", got)
	}
	r.do("GET", "/api/v1/events/evt_dead?reveal=1", "")
	if got := r.log.String(); !strings.Contains(got, "event_id=evt_dead") || !strings.Contains(got, "remote=192.0.2.1:1234") {
		t.Errorf("log: %s", got)
	}
	r.log.Reset()
	r.level.Set(slog.LevelError)
	r.do("GET", "/api/v1/events/evt_dead?reveal=1", "")
	if got := r.log.String(); !strings.Contains(got, "event_id=evt_dead") {
		t.Errorf("the log of errors alone has no witness: %s", got)
	}
}

// A parameter without a value is one that was left out, as the forms of browsers send it.
func TestEmptyParameters(t *testing.T) {
	r := newRig(t)
	for with, without := range map[string]string{
		"events?state=&endpoint=&limit=&cursor=":                             "events",
		"events/evt_dead?reveal=":                                            "events/evt_dead",
		"dead-letters?endpoint=&status=&error=&since=&until=&limit=&cursor=": "dead-letters",
	} {
		got, want := r.do("GET", "/api/v1/"+with, ""), r.do("GET", "/api/v1/"+without, "")
		if got.Code != 200 || got.Body.String() != want.Body.String() {
			t.Errorf("%s: %d %s", with, got.Code, got.Body)
		}
	}
	if got := r.do("GET", "/api/v1/dead-letters/analysis?hours=", ""); got.Code != 200 || !strings.Contains(got.Body.String(), `"hours":24`) {
		t.Errorf("an empty number of hours: %d %s", got.Code, got.Body)
	}
}

func TestRevealedBodyIsTextOrBase64(t *testing.T) {
	for _, tc := range []struct{ body, shown, encoding string }{
		{"", "", "utf-8"},
		{"a<b>&\u2028", "a<b>&\u2028", "utf-8"},
		{"\xff\xfe\x00", "//4A", "base64"},
	} {
		r := newRig(t)
		r.spool.views[1].Body = []byte(tc.body)
		var got struct {
			Body     *string
			Encoding string `json:"body_encoding"`
		}
		w := r.do("GET", "/api/v1/events/evt_dead?reveal=1", "")
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Body == nil || *got.Body != tc.shown || got.Encoding != tc.encoding {
			t.Errorf("body %q is shown as %v, %s", tc.body, got.Body, got.Encoding)
		}
	}
}

func TestStatusWithoutAnything(t *testing.T) {
	r := newRig(t, func(p *admin.Parts) {
		p.Ready = func() []string { return []string{"the spool is full"} }
		p.Sync = func() any { return map[string]any{"enabled": true, "lag_seconds": 1.5} }
	})
	r.spool.stats.OldestPending = time.Time{}
	r.spool.stats.LastHour.Delivered = 0
	r.want(r.do("GET", "/api/v1/status", ""), 200, `{"pending":1,"awaiting_retry":2,"in_flight":3,"dead_letter":4,`+
		`"delivered_last_hour":0,"failed_last_hour":6,"oldest_pending":null,"avg_delivery_ms_last_hour":null,"spool_bytes":65536,"spool_max_bytes":16777216,`+
		`"sync":{"enabled":true,"lag_seconds":1.5},"instance_id":"1b4e28ba-2fa1-11d2-883f-0016d3cca427","version":"1.2.3","ready":false,"reasons":["the spool is full"]}`)
}

func TestPagesAddUpToEverything(t *testing.T) {
	r := newRig(t)
	var ids []string
	cursor := ""
	for range 10 {
		var page struct {
			Events []struct{ ID string }
			Next   *string `json:"next_cursor"`
		}
		w := r.do("GET", "/api/v1/events?limit=4&cursor="+cursor, "")
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	if want := []string{"evt:p.1-_", "evt_busy", "evt_failed", "evt_expired", "evt_dead", "evt_delivered"}; !slices.Equal(ids, want) {
		t.Errorf("pages have %v, want %v", ids, want)
	}
}

func TestSuggestedLimitComesFromAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := newRig(t, func(p *admin.Parts) {
			p.Answers = func(since time.Time, yield func(string, time.Time, int) bool) error {
				asked++
				if !since.Equal(time.Now().Add(-24 * time.Hour)) {
					t.Errorf("since %v", since)
				}
				for _, status := range []int{200, 204, 429} {
					yield("partner-a", at(22, 0), status)
				}
				return nil
			}
		})
		w := r.do("GET", "/api/v1/dead-letters/analysis?hours=24", "")
		if asked != 0 || strings.Contains(w.Body.String(), "throttled") {
			t.Errorf("without a 429 the attempts need not be read: %d, %s", asked, w.Body)
		}
		r.spool.views[1].History[1].StatusCode = 429
		w = r.do("GET", "/api/v1/dead-letters/analysis?hours=24", "")
		if !strings.Contains(w.Body.String(), `"suggested_limit":"2/1m"`) {
			t.Errorf("no suggestion: %s", w.Body)
		}
		r.parts.Answers = func(time.Time, func(string, time.Time, int) bool) error { return errors.New("broken") }
		r.handler = admin.New(r.parts)
		r.refused(r.do("GET", "/api/v1/dead-letters/analysis", ""), 500, "log")
	})
}
