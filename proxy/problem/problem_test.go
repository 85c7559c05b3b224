package problem_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"postern/proxy/problem"
)

func TestWrite(t *testing.T) {
	tests := []struct {
		name    string
		problem problem.Problem
		status  int
		body    string
		headers map[string]string
	}{
		{
			name:    "everything",
			problem: problem.Problem{Status: 503, Slug: "spool-full", Title: "The spool is full", Detail: "Wait.", RetryAfter: 5 * time.Second},
			status:  503,
			body:    `{"type":"urn:postern:problem:spool-full","title":"The spool is full","status":503,"detail":"Wait."}`,
			headers: map[string]string{"Retry-After": "5"},
		},
		{
			name:   "zero value",
			status: 500,
			body:   `{"type":"about:blank","title":"Internal Server Error","status":500}`,
		},
		{
			name:    "angle brackets, quotes and a line break stay readable",
			problem: problem.Problem{Status: 400, Detail: "write <URL> & \"quote\"\n"},
			status:  400,
			body:    `{"type":"about:blank","title":"Bad Request","status":400,"detail":"write <URL> & \"quote\"\n"}`,
		},
		{
			name:    "invalid UTF-8 is still JSON",
			problem: problem.Problem{Status: 400, Detail: "a\xffb"},
			status:  400,
			body:    `{"type":"about:blank","title":"Bad Request","status":400,"detail":"a\ufffdb"}`,
		},
		{
			name: "headers of its own",
			problem: problem.Problem{Status: 405, Header: http.Header{"Allow": {"GET, POST"},
				"Content-Type": {"text/html"}}},
			status:  405,
			body:    `{"type":"about:blank","title":"Method Not Allowed","status":405}`,
			headers: map[string]string{"Allow": "GET, POST"},
		},
		{
			name:    "a part of a second is a whole one",
			problem: problem.Problem{Status: 503, RetryAfter: 1001 * time.Millisecond},
			status:  503,
			body:    `{"type":"about:blank","title":"Service Unavailable","status":503}`,
			headers: map[string]string{"Retry-After": "2"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			problem.Write(rec, tt.problem)
			if rec.Code != tt.status {
				t.Errorf("status %d, want %d", rec.Code, tt.status)
			}
			var got, want any
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
				t.Fatalf("not JSON: %v in %s", err, rec.Body)
			}
			if err := json.Unmarshal([]byte(tt.body), &want); err != nil {
				t.Fatal(err)
			}
			if g, w := mustJSON(t, got), mustJSON(t, want); g != w {
				t.Errorf("body %s, want %s", g, w)
			}
			if ct := rec.Header().Get("Content-Type"); ct != problem.ContentType {
				t.Errorf("content type %q", ct)
			}
			for name, value := range tt.headers {
				if got := rec.Header().Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			if tt.problem.RetryAfter == 0 && rec.Header().Get("Retry-After") != "" {
				t.Error("Retry-After without a reason")
			}
		})
	}
}

func TestAngleBracketsAreNotEscaped(t *testing.T) {
	rec := httptest.NewRecorder()
	problem.Write(rec, problem.Problem{Status: 400, Detail: "<URL> & more"})
	if body := rec.Body.String(); !strings.Contains(body, "<URL> & more") {
		t.Errorf("escaped: %s", body)
	}
}

// A HEAD request gets the same header fields and no body, and the connection stays in step.
func TestHead(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.Problem{Status: 404, Detail: "no"})
	}))
	defer srv.Close()
	for range 2 {
		resp, err := srv.Client().Head(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || len(body) != 0 {
			t.Errorf("body %q, %v", body, err)
		}
		if resp.StatusCode != 404 || resp.ContentLength <= 0 {
			t.Errorf("status %d, length %d", resp.StatusCode, resp.ContentLength)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
