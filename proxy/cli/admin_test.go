package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestJSONIsTheAPIs(t *testing.T) {
	f := newFake(t, answers())
	for line, path := range map[string]string{
		"status --json":                         "GET /api/v1/status",
		"events list --json":                    "GET /api/v1/events?limit=50",
		"events show --reveal --json evt_1":     "GET /api/v1/events/evt_1?reveal=1",
		"endpoints --json":                      "GET /api/v1/endpoints",
		"endpoints show partner-a --json":       "GET /api/v1/endpoints/partner-a",
		"dead-letters list --json":              "GET /api/v1/dead-letters?limit=50",
		"dead-letters analyze --json":           "GET /api/v1/dead-letters/analysis?hours=24",
		"dead-letters purge --all --yes --json": "POST /api/v1/dead-letters/purge",
		"dead-letters replay --all --json":      "POST /api/v1/dead-letters/replay",
	} {
		got := f.on(t, line)
		var printed, served any
		if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil || got.code != 0 || got.stderr != "" {
			t.Errorf("postern %s: %v, code %d: %s%s", line, err, got.code, got.stdout, got.stderr)
		}
		if err := json.Unmarshal([]byte(f.answers[path]), &served); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(printed)
		b, _ := json.Marshal(served)
		if string(a) != string(b) {
			t.Errorf("postern %s prints\n%s\nand the API says\n%s", line, a, b)
		}
	}
}

func TestWhatIsAsked(t *testing.T) {
	f := newFake(t, answers())
	for line, want := range map[string]string{
		"events list --endpoint https://p.example --state failed --limit 5 --cursor c": "GET /api/v1/events?cursor=c&endpoint=https%3A%2F%2Fp.example&limit=5&state=failed",
		"dead-letters list --status 503 --error http_503 --since 24h --until 1h":       "GET /api/v1/dead-letters?error=http_503&limit=50&since=24h&status=503&until=1h",
		"dead-letters replay --endpoint a --rate 100/1m --dry-run":                     `POST /api/v1/dead-letters/replay {"endpoint":"a","dry_run":true,"rate":"100/1m"}`,
		"dead-letters purge --until 720h -y":                                           `POST /api/v1/dead-letters/purge {"until":"720h"}`,
		"dead-letters show evt_7":                                                      "GET /api/v1/events/evt_7",
	} {
		f.asked = nil
		f.on(t, line)
		if !slices.Equal(f.asked, []string{want}) {
			t.Errorf("postern %s asked %q, want %q", line, f.asked, want)
		}
	}
}

func TestMorePages(t *testing.T) {
	got := newFake(t, answers()).on(t, "events")
	if want := "There are more: repeat the command with --cursor c2\n"; got.stderr != want {
		t.Errorf("stderr %q, want %q", got.stderr, want)
	}
}

func TestReveal(t *testing.T) {
	got := newFake(t, answers()).on(t, "events show --reveal evt_1").stdout
	for _, want := range []string{"\nNo attempt yet.\n", "\ntarget: /x?token=1\nX-A: b\n\n{\n}\n", "the receiver's last answer: 503\nLocation: https://x.example\n(base64) //4=\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestRefusalsAreExplained(t *testing.T) {
	f := newFake(t, answers())
	for line, want := range map[string]string{
		"events show evt_2":         "postern: No such thing: look elsewhere (status 404)\n",
		"events retry evt_2 evt_1":  "postern: evt_2: No such thing: look elsewhere (status 404)\n",
		"endpoints pause elsewhere": "postern: No such thing: look elsewhere (status 404)\n",
	} {
		if got := f.on(t, line); got.code != 1 || got.stderr != want {
			t.Errorf("postern %s: code %d, %q; want %q", line, got.code, got.stderr, want)
		}
	}
	if got := f.on(t, "events retry evt_2 evt_1"); got.stdout != "evt_1: due now\n" {
		t.Errorf("the event after a refused one: %q", got.stdout)
	}
}

func TestExitCodeOfABadRequest(t *testing.T) {
	f := newFake(t, nil)
	f.status = 400
	if got := f.on(t, "dead-letters --since yesterday"); got.code != 2 {
		t.Errorf("code %d, want 2: %s", got.code, got.stderr)
	}
	f.status = 401
	if got := f.on(t, "status"); got.code != 1 || !strings.Contains(got.stderr, "--token-file") {
		t.Errorf("code %d: %s", got.code, got.stderr)
	}
}

// A container's health check meets a listener with a token long before a person does.
func TestHealthcheckWithoutItsToken(t *testing.T) {
	f := newFake(t, nil)
	f.status = 401
	if got := f.on(t, "healthcheck"); got.code != 1 || strings.Contains(got.stderr, "not ready") || !strings.Contains(got.stderr, "--token-file") {
		t.Errorf("code %d: %s", got.code, got.stderr)
	}
}

func TestNotReady(t *testing.T) {
	f := newFake(t, nil)
	f.status, f.refusal = 503, `{"ready":false,"reasons":["the spool is full","stopping"]}`
	got := f.on(t, "healthcheck")
	if want := "postern: not ready (status 503): the spool is full; stopping\n"; got.code != 1 || got.stderr != want {
		t.Errorf("code %d, %q; want %q", got.code, got.stderr, want)
	}
}

// status says why Postern takes nothing, a line for each reason.
func TestStatusNotReady(t *testing.T) {
	f := newFake(t, map[string]string{
		"GET /api/v1/status": strings.Replace(status, `"ready":true,"reasons":[]`, `"ready":false,"reasons":["the spool is full","postern is stopping"]`, 1),
	})
	want := "ready                        NO\n                             the spool is full\n                             postern is stopping\npending "
	if got := f.on(t, "status"); got.code != 0 || !strings.HasPrefix(got.stdout, want) {
		t.Errorf("code %d, %q; want it to begin with %q", got.code, got.stdout, want)
	}
}

// TestAddressFromTheConfiguration: the same file that run reads says where it listens, and with which token.
func TestAddressFromTheConfiguration(t *testing.T) {
	f := newFake(t, answers())
	dir := t.TempDir()
	file := filepath.Join(dir, "postern.yaml")
	text := "admin: { listen: " + strings.TrimPrefix(f.URL, "http://") + ", token_file: token }\n"
	for path, content := range map[string]string{file: text, filepath.Join(dir, "token"): "open-sesame-open-sesame-open-sesame\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []typed{
		{args: []string{"healthcheck", "--config", file}},
		{args: []string{"healthcheck"}, env: map[string]string{"POSTERN_CONFIG": file}},
		{args: []string{"healthcheck"}, env: map[string]string{"POSTERN_ADMIN_LISTEN": strings.TrimPrefix(f.URL, "http://")}},
	} {
		if got := p.run(t); got.code != 0 || got.stdout != "ready\n" {
			t.Errorf("%v: code %d: %s%s", p, got.code, got.stdout, got.stderr)
		}
	}
	if f.token != "" {
		t.Errorf("a token was sent where none is named: %q", f.token)
	}
	typed{args: []string{"status", "--config", file}}.run(t)
	if f.token != "Bearer open-sesame-open-sesame-open-sesame" {
		t.Errorf("the token of the configuration was not sent: %q", f.token)
	}
}
