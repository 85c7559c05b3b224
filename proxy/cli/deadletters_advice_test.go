package cli

import (
	"strings"
	"testing"
)

// TestAdviceWithoutAPattern: every class of failure has a next step, on one line, with the endpoint in its commands.
func TestAdviceWithoutAPattern(t *testing.T) {
	f := newFake(t, answers())
	for class, says := range map[string]string{
		"dns": "cannot be resolved", "connect": "host and port", "tls": "certificate", "timeout": "raise the endpoint's timeout", "connection": "breaks",
		"redirect": "Location", "body_rule": "success.body_rejects", "blocked_address": "targets.allow", "invalid_request": "headers.set", "expired": "Postern-Ttl",
		"http_404": "path of the url", "http_408": "gave up waiting", "http_410": "endpoints resume partner-a", "http_500": "fails by itself", "http_599": "well again, replay:",
		"http_400": "refuses these requests", "http_100": "refuses these requests", "": "Look at one of them",
	} {
		one := strings.Replace(analysis, `"http_401"`, `"`+class+`"`, 1)
		before, _, _ := strings.Cut(one, `{"pattern"`)
		f.answers["GET /api/v1/dead-letters/analysis?hours=24"] = before + "]}]}"
		got := f.on(t, "dead-letters analyze")
		_, text, _ := strings.Cut(got.stdout, "\npartner-a: mostly "+dash(class)+"\n  -> ")
		if got.code != 0 || !strings.Contains(text, says) || strings.Count(text, "\n") != 1 || strings.Contains(text, "NAME") {
			t.Errorf("%q: code %d, %q\n%s%s", class, got.code, text, got.stdout, got.stderr)
		}
		if !strings.Contains(text, "replay: postern dead-letters replay --endpoint partner-a") {
			t.Errorf("%q has no command to replay: %q", class, text)
		}
	}
}
