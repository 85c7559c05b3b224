package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The files that we ship load without any environment and without files beside them.
func TestShippedFiles(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v: minimal, starter, full, affiliate and saas are wanted", files, err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			_, err := Load(Options{Path: file, Getenv: env{}.get})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestFullFileIsTheDefaults(t *testing.T) {
	full, err := Load(Options{Path: "full.yaml", Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(Show(full)), string(Show(Defaults())); got != want {
		t.Errorf("full.yaml:\n%s\nthe defaults:\n%s", got, want)
	}
	none, err := Load(Options{Dir: t.TempDir(), Data: "./postern-data", Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	full.File, full.Spool.Dir, none.Spool.Dir, none.Blank = "", "", "", false
	full.Endpoints, full.QueryKeysInLogs, full.Targets.Allow, full.Spool.EncryptionKeyFiles = nil, nil, nil, nil // empty, not nil
	full.Defaults.Limits, full.Sync.Labels = nil, nil
	if !reflect.DeepEqual(full, none) {
		t.Errorf("full.yaml: %+v\nno file: %+v", full, none)
	}
}

// Every setting of the reference is in full.yaml, in a comment where it has no default.
func TestFullFileHasEverySetting(t *testing.T) {
	data, err := os.ReadFile("full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	r := newReader("full.yaml", ".", env{}.get)
	c.fields().read(r, r.parseDocument(data), "")
	for _, s := range Reference() {
		common := strings.Replace(s.Path, "endpoints[]", "defaults", 1)
		_, name := filepath.Split(strings.ReplaceAll(s.Path, ".", "/"))
		inFile := r.has(common) || common == "defaults.retry.schedule"
		if !inFile && !strings.Contains(string(data), "#     "+name+":") && !strings.Contains(string(data), "#       "+name+":") &&
			!strings.Contains(string(data), "#   - "+name+":") {
			t.Errorf("%s is not in full.yaml", s.Path)
		}
		if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s has no sentence that documents it: %q", s.Path, s.Doc)
		}
	}
}

func TestScenarios(t *testing.T) {
	affiliate, err := Load(Options{Path: "affiliate.yaml", Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	a, ok := affiliate.Endpoint("partner-a")
	if !ok || a.Policy.Retry.MaxAttempts != 8 || a.Policy.Limits[0] != (Limit{100, time.Minute}) || a.Policy.Burst != 10 {
		t.Errorf("partner-a: %+v", a)
	}
	if b, ok := affiliate.Endpoint("partner-b"); !ok || !b.Policy.Success.BodyMatches.MatchString("1\n") || b.Policy.Success.BodyMatches.MatchString("10") {
		t.Errorf("partner-b: %+v", b)
	}
	saas, err := Load(Options{Path: "saas.yaml", Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	if chat, ok := saas.Endpoint("chat"); !ok || chat.Policy.Retry.HasSchedule || chat.Policy.Retry.MaxAttempts != 4 {
		t.Errorf("chat: %+v", chat)
	}
}

// The example that users see first loads as it stands.
func TestTheWholeExample(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t)
	write(t, dir, "ca.pem", cert)
	write(t, dir, "client.pem", cert)
	write(t, dir, "client.key", key)
	write(t, dir, "partner-a", "whsec_c2VjcmV0\n")
	write(t, dir, "postern.yaml", `
listen: 127.0.0.1:8089
admin: { listen: 127.0.0.1:8090 }
probes: { listen: "" }
defaults:
  retry: { max_attempts: 5, base_delay: 30s, max_delay: 1h, max_retry_after: 1h }
  breaker: { failure_threshold: 10, cooldown: 5m, max_cooldown: 1h, slow_p95: 5s, slow_failure_threshold: 5 }
  override: { max_attempts: 100, max_timeout: 60s }
endpoints:
  - name: partner-a
    url: https://partner.example/postback?aff=7
    match: [https://partner.example/]       # a comment
    limits: ["100/1m", "1000/1h"]
    burst: 1
    sign: { scheme: standard, secrets: ["file:partner-a"] }
    success: { body_rejects: '"status":\s*"error"' }
    headers: { set: { X-Api-Key: "${PARTNER_KEY}" } }
    tls: { ca_file: ca.pem, cert_file: client.pem, key_file: client.key }
sync:
  dsn: ${POSTERN_SYNC_DSN}                  # empty: no sync
  labels: { service: checkout, region: eu }
`)
	c, err := Load(Options{Dir: dir, Getenv: env{"PARTNER_KEY": "k"}.get})
	if err != nil {
		t.Fatal(err)
	}
	e := c.Endpoints[0]
	if e.URL.String() != "https://partner.example/postback?aff=7" || e.Match[0].Origin() != "https://partner.example" ||
		string(e.Policy.Sign.Secrets[0]) != "secret" || !e.Policy.Success.BodyRejects.MatchString(`{"status": "error"}`) {
		t.Errorf("%+v", e)
	}
}

// What the starter has in comments is right too: without the comment signs it loads.
func TestStarterWithoutItsComments(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "partner-a.secret", "whsec_c2VjcmV0\n")
	var lines []string
	for line := range strings.Lines(string(Starter)) {
		setting, commented := strings.CutPrefix(line, "# ")
		indented, deeper := strings.CutPrefix(line, "  # ")
		switch {
		case deeper:
			line = "  " + indented
		case commented && (strings.HasPrefix(setting, "  ") || strings.HasSuffix(setting, ":\n")):
			line = setting
		}
		lines = append(lines, line)
	}
	write(t, dir, "postern.yaml", strings.Join(lines, ""))
	c, err := Load(Options{Dir: dir, Getenv: env{}.get})
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, ""))
	}
	if len(c.Endpoints) != 1 || len(c.Targets.Allow) != 2 || c.Sync.Labels["service"] != "checkout" {
		t.Errorf("%+v", c)
	}
}
