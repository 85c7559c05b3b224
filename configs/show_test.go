package configs

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const secretful = `
outbound_proxy: http://u:SEC1@proxy.example:1
sync: { dsn: "postgres://SEC2@db/x", labels: { "on": "yes", b: "1.0" } }
endpoints:
  - name: "007"
    url: https://u:SEC3@partner.example/p?k=SEC4
    match: ["https://partner.example/"]
    limits: ["5/1m30s"]
    sign: { scheme: hub, secrets: [SEC5, SEC6] }
    headers: { set: { X-Key: SEC7 } }
    success: { body_rejects: '"status":\s*"<error>"' }
    retry: { schedule: [1h, 90s] }
`

func TestShowHidesSecrets(t *testing.T) {
	shown := string(Show(mustLoad(t, secretful, nil)))
	if strings.Contains(shown, "SEC") {
		t.Errorf("a secret is shown:\n%s", shown)
	}
	for _, want := range []string{
		`outbound_proxy: "***"`, `dsn: "***"`, `secrets: ["***", "***"]`, `X-Key: "***"`, `url: "https://partner.example/p?…"`,
		`name: "007"`, `"on": "yes"`, `b: "1.0"`, `limits: [5/1m30s]`, `schedule: [1h, 1m30s]`, `body_rejects: "\"status\":\\s*\"<error>\""`,
	} {
		if !strings.Contains(shown, want+"\n") {
			t.Errorf("%s is not in\n%s", want, shown)
		}
	}
}

// What is shown loads again and shows the same, but for what is hidden in it.
func TestShowLoadsAgain(t *testing.T) {
	c := mustLoad(t, strings.NewReplacer("http://u:SEC1@proxy.example:1", `""`, "?k=SEC4", "").Replace(secretful), nil)
	shown := string(Show(c))
	again := strings.ReplaceAll(shown, c.Spool.Dir, "./postern-data")
	got := string(Show(mustLoad(t, again, nil)))
	cut := func(text string) string { // each was loaded from a directory of its own
		lines := strings.Split(text, "\n")
		return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  dir: ") }), "\n")
	}
	if cut(got) != cut(shown) {
		t.Errorf("first:\n%s\nthen:\n%s", shown, got)
	}
}

// Whatever a text holds, YAML reads it back as that text.
func TestScalarsAreQuotedWhereNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[0-9a-fxXobeE_.+-]{0,8}`),
			rapid.SampledFrom([]string{"~", "null", "Null", "true", "yes", "off", ".inf", ".NaN", "<<", "-", "?", "1:2", "a: b", "a #b", "%x", "@", "é", "\t", "\u2028", "---", "..."}),
			rapid.StringOf(rapid.RuneFrom([]rune("ab 0:#-[]{}'\"\\&*!|>%@`,?é\n\t"))),
		).Draw(t, "text")
		r := newReader("f", ".", env{}.get)
		root := r.parseDocument([]byte("x: " + writeScalar(text) + "\n"))
		pairs, ok := r.pairs(root, "")
		if !ok || len(pairs) != 1 || len(r.problems) > 0 {
			t.Fatalf("%q was written as %s, which is not read: %v", text, writeScalar(text), join(r.problems))
		}
		if got, ok := scalarText(r.resolve(pairs[0].value)); !ok || got != text {
			t.Fatalf("%q was written as %s and read as %q", text, writeScalar(text), got)
		}
	})
}

func TestRestartOnly(t *testing.T) {
	dir := t.TempDir()
	load := func(yaml string) *Config {
		write(t, dir, "postern.yaml", yaml)
		c, err := Load(Options{Dir: dir, Getenv: env{}.get})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := load("")
	for _, tc := range []struct {
		name, yaml string
		want       []string
	}{
		{"nothing", "", nil},
		{"the defaults written out", "query_keys_in_logs: []\nspool: { encryption_key_files: [], max_bytes: 1024MiB }\nsync: { labels: {} }\n", nil},
		{"what a reload changes", "shutdown_grace: 1s\nconcurrency: 3\nlog: { level: debug }\noutbound_proxy: http://proxy.example\ndefaults: { timeout: 1s }\ntargets: { allow_private: true }\nadmin: { pprof: true }\nendpoints: [{ name: a, url: http://partner.example/ }]\n", nil},
		{"listeners", "listen: 127.0.0.1:1\nprobes: { listen: \":2\" }\n", []string{"listen", "probes.listen"}},
		{"spool and sync", "spool: { dir: x, max_event_bytes: 1KiB }\nsync: { dsn: x, labels: { a: b } }\n", []string{"spool.dir", "spool.max_event_bytes", "sync.labels"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := RestartOnly(old, load(tc.yaml)); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReference(t *testing.T) {
	byPath := make(map[string]Setting)
	for _, s := range Reference() {
		if _, twice := byPath[s.Path]; twice {
			t.Errorf("%s is there twice", s.Path)
		}
		byPath[s.Path] = s
	}
	for path, want := range map[string]Setting{
		"listen":               {Default: `"127.0.0.1:8089"`, Restart: true},
		"spool":                {Section: true},
		"spool.max_bytes":      {Default: "1GiB", Restart: true},
		"defaults.retry":       {Section: true},
		"endpoints[].burst":    {Default: "1"},
		"endpoints[].tls":      {Section: true},
		"endpoints[].name":     {Default: `""`},
		"endpoints":            {Default: "[]"},
		"query_keys_in_logs":   {Default: "[]"},
		"sync.labels":          {Default: "{}", Restart: true},
		"defaults.limits":      {Default: "[]"},
		"defaults.sign.scheme": {Default: "none"},
	} {
		got, ok := byPath[path]
		if !ok || got.Default != want.Default || got.Restart != want.Restart || got.Section != want.Section {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}
