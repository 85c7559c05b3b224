package e2e

import (
	le "encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// typed runs a command and checks its exit code and that its output has these parts; with --json it must be JSON.
func (p *postern) typed(code int, command string, says ...string) string {
	p.t.Helper()
	args := strings.Fields(command)
	stdout, stderr, got := p.run(args...)
	if got != code {
		p.t.Errorf("postern %s: exit code %d, want %d: %s%s", command, got, code, stdout, stderr)
	}
	for _, part := range says {
		if !strings.Contains(stdout+stderr, part) {
			p.t.Errorf("postern %s does not say %q: %s%s", command, part, stdout, stderr)
		}
	}
	if strings.Contains(command, "--json") && code == 0 && !json.Valid([]byte(stdout)) {
		p.t.Errorf("postern %s: not JSON: %s", command, stdout)
	}
	if code != 0 && stderr == "" {
		p.t.Errorf("postern %s fails without a word on standard error", command)
	}
	return stdout
}

// What a person types at a running Postern: each command as a table and as JSON, and its exit code.
func TestCommandsOfARunningPostern(t *testing.T) {
	t.Parallel()
	ok, denied := newReceiver(t, nil), newReceiver(t, script(status(401)))
	p := startPostern(t, calm+"endpoints:\n  - { name: denied, url: \""+denied.url("/")+"\" }\n")
	p.typed(0, "healthcheck", "ready")
	p.typed(0, "healthcheck --live", "alive")

	p.typed(0, "send --event-id one "+ok.url("/a?cid=SECRET"), "one: accepted")
	if q := ok.wait(1, patience)[0]; q.Line != "GET /a?cid=SECRET HTTP/1.1" || q.eventID() != "one" {
		t.Errorf("sent: %q as %s", q.Line, q.eventID())
	}
	p.typed(0, "send --to denied -d body --event-id two --json", `"id": "two"`)
	p.typed(1, "send --to nobody -d body", "nobody")
	p.typed(2, "send", "URL")
	p.waitState("two", "dead_letter", patience)
	p.waitState("one", "delivered", patience)

	for command, says := range map[string]string{
		"status": "dead letters", "events": "two", "events --state delivered": "one", "events show two": "http_401", "endpoints": "denied",
		"endpoints show denied": "closed", "dead-letters": "two", "dead-letters list --status 401": "two", "dead-letters show two": "http_401",
		"dead-letters analyze": "credentials", "dead-letters replay --dry-run": "1 dead letter",
	} {
		if text := p.typed(0, command, says); strings.Contains(text, "SECRET") {
			t.Errorf("postern %s shows a query: %s", command, text)
		}
		p.typed(0, command+" --json")
	}
	for _, id := range []string{".", "..", "a:b"} { // valid as IDs, and special in a path
		p.typed(0, "send --to denied -d body --delay 1h --event-id "+id, id+": accepted")
		p.typed(0, "events show "+id, "denied")
		p.typed(0, "events delete "+id, "deleted")
	}
	p.typed(1, "events show nobody", "No such event")
	p.typed(1, "endpoints show nobody", "there is no endpoint")
	p.typed(2, "events --state lost", "state")
	p.typed(2, "dead-letters list --since yesterday", "since")
	p.typed(2, "healthcheck --timeout 0s", "more than 0s")
	p.typed(2, "frobnicate", "frobnicate")

	denied.setAnswer(nil)
	p.typed(0, "dead-letters replay --endpoint denied", "1 dead letter replayed")
	p.waitState("two", "delivered", patience)
	p.typed(0, "endpoints pause denied", "paused")
	p.typed(0, "send --to denied --event-id three", "three")
	p.waitState("three", "pending", patience)
	p.typed(0, "events delete three", "deleted")
	p.typed(0, "endpoints resume denied", "resumed")
	p.typed(2, "dead-letters purge", "--all")
	p.typed(2, "dead-letters purge --yes", "--all")
	p.typed(2, "dead-letters purge --all", "--yes")
	p.typed(0, "dead-letters purge --all --yes", "0 dead letters")

	p.stop(patience)
	for _, command := range []string{"healthcheck", "status", "events", "send http://partner.example/", "dead-letters list"} {
		p.typed(1, command, "postern run")
	}
}

// The spool's own commands, on the spool of a Postern that is stopped, killed, and damaged.
func TestSpoolCommands(t *testing.T) {
	t.Parallel()
	p := startPostern(t, downForNow)
	flood(t, p, 300, "/http://"+freeAddr(t)+"/")
	p.kill()
	data := " --data " + p.dataDir()
	p.typed(0, "spool check"+data, "whole")
	var report struct {
		Whole    bool
		Pending  int
		Awaiting int `json:"awaiting_retry"`
	}
	if err := json.Unmarshal([]byte(p.typed(0, "spool check --json"+data)), &report); err != nil || !report.Whole || report.Pending+report.Awaiting != 300 {
		t.Errorf("check: %+v, %v", report, err)
	}
	p.typed(0, "spool compact"+data, "now")
	p.typed(0, "spool check"+data, "whole")

	file := filepath.Join(p.dataDir(), "spool.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[:2*le.LittleEndian.Uint32(b[24:])]) // both meta pages; the first one tells their size
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p.typed(1, "spool check"+data, "salvage")
	var salvaged struct {
		Recovered, Lost int
		SetAside        int `json:"set_aside"`
		Damage          string
		Pages           int `json:"damaged_pages"`
		Kept            string
	}
	if err := json.Unmarshal([]byte(p.typed(0, "spool salvage --json"+data)), &salvaged); err != nil || salvaged.Recovered != 300 || salvaged.Damage == "" || salvaged.Pages == 0 || salvaged.SetAside != 0 {
		t.Errorf("salvage: %+v, %v", salvaged, err)
	}
	if _, err := os.Stat(filepath.Join(p.dataDir(), filepath.Base(salvaged.Kept))); err != nil || !strings.Contains(salvaged.Kept, "corrupt") {
		t.Errorf("the damaged file: %q, %v", salvaged.Kept, err)
	}
	p.typed(0, "spool check"+data, "whole")
	for _, command := range []string{"check", "compact", "salvage"} {
		p.typed(1, "spool "+command+" --data "+filepath.Join(p.dir, "nowhere"))
		p.typed(2, "spool "+command+data+" --nonsense", "--nonsense")
		copied := filepath.Join(p.dir, "copy-to-"+command) // what is looked at may be a copy, while Postern runs or not
		if err := os.CopyFS(copied, os.DirFS(p.dataDir())); err != nil {
			t.Fatal(err)
		}
		p.typed(0, "spool "+command+" --json --data "+copied, `"dir"`)
	}
	p.start()
	p.eventually(patience, "300 events to be there", func() bool { return p.waiting() == 300 })
}

func TestConfigCommands(t *testing.T) {
	t.Parallel()
	p := newPostern(t, "endpoints:\n  - { name: a, url: \"https://partner.example/?key=SECRET1\", headers: { set: { X-Key: \"${E2E_KEY}\" } } }\n")
	p.typed(2, "config check --config postern.yaml", "E2E_KEY", "postern.yaml:4")
	p.writeConfig("endpoints:\n  - { name: a, url: \"https://partner.example/?key=SECRET1\", headers: { set: { X-Key: SECRET2 } } }\n")
	p.typed(0, "config check --config postern.yaml", "1 endpoint")
	text := p.typed(0, "config show --config postern.yaml", "max_attempts: 5", "partner.example")
	if strings.Contains(text, "SECRET") {
		t.Errorf("config show shows a secret: %s", text)
	}
	// What it prints is a configuration, once the query is back.
	p.writeConfig(strings.Replace(text, "?…", "?key=x", 1))
	p.typed(0, "config check --config postern.yaml")
	p.typed(2, "config check --config nowhere.yaml", "nowhere.yaml")
}

// A configuration with each kind of mistake: exit code 2, file and line, and what would be right.
func TestConfigurationMistakes(t *testing.T) {
	t.Parallel()
	p := newPostern(t, "")
	for name, c := range map[string]struct {
		yaml string
		says []string
	}{
		"not YAML":               {"listen: [\n", []string{"postern.yaml:1", "YAML"}},
		"unknown key":            {"spool:\n  dirr: x\n", []string{"postern.yaml:2", "dirr", "did you mean dir?"}},
		"bad duration":           {"defaults:\n  timeout: soon\n", []string{"postern.yaml:2", "timeout", "30s"}},
		"duration without unit":  {"defaults:\n  timeout: 15\n", []string{"postern.yaml:2", "timeout"}},
		"bad size":               {"spool: { max_bytes: lots }\n", []string{"postern.yaml:1", "max_bytes", "64MiB"}},
		"negative":               {"concurrency: -1\n", []string{"postern.yaml:1", "concurrency"}},
		"no concurrency":         {"concurrency: 0\n", []string{"postern.yaml:1", "concurrency"}},
		"zero limit":             {"defaults: { limits: [\"0/1s\"] }\n", []string{"postern.yaml:1", "limits"}},
		"zero burst":             {"defaults: { burst: 0 }\n", []string{"postern.yaml:1", "burst"}},
		"a limit of nothing":     {"defaults: { limits: [\"5/0s\"] }\n", []string{"postern.yaml:1", "limits"}},
		"schedule and attempts":  {"defaults: { retry: { schedule: [1s], max_attempts: 3 } }\n", []string{"postern.yaml:1", "max_attempts"}},
		"no attempts":            {"defaults: { retry: { max_attempts: 0 } }\n", []string{"postern.yaml:1", "max_attempts"}},
		"share over one":         {"spool: { max_endpoint_share: 1.5 }\n", []string{"postern.yaml:1", "max_endpoint_share"}},
		"bad regexp":             {"defaults: { success: { body_matches: '(' } }\n", []string{"postern.yaml:1", "body_matches"}},
		"unset variable":         {"outbound_proxy: ${E2E_UNSET}\n", []string{"postern.yaml:1", "E2E_UNSET"}},
		"no such file":           {"outbound_proxy: file:nowhere\n", []string{"postern.yaml:1", "nowhere"}},
		"two of one name":        {"endpoints:\n  - { name: a, url: https://a.example }\n  - { name: a, url: https://b.example }\n", []string{"postern.yaml:3", "name"}},
		"no url":                 {"endpoints:\n  - { name: a }\n", []string{"postern.yaml:2", "url"}},
		"not http":               {"endpoints:\n  - { name: a, url: ftp://a.example }\n", []string{"postern.yaml:2", "url"}},
		"blank in a url":         {"endpoints:\n  - { name: a, url: \"https://a.example/a b\" }\n", []string{"postern.yaml:2", "url"}},
		"bad name":               {"endpoints:\n  - { name: \"a/b\", url: https://a.example }\n", []string{"postern.yaml:2", "name"}},
		"one port twice":         {"listen: 127.0.0.1:7\nadmin: { listen: 127.0.0.1:7 }\n", []string{"postern.yaml:2", "admin.listen"}},
		"no port":                {"listen: localhost\n", []string{"postern.yaml:1", "listen"}},
		"log level":              {"log: { level: loud }\n", []string{"postern.yaml:1", "debug, info, warn"}},
		"not loopback, no token": {"listen: 0.0.0.0:8089\n", []string{"postern.yaml:1", "token_file"}},
	} {
		p.writeConfig(c.yaml)
		for _, command := range []string{"config check --config postern.yaml", "run --config postern.yaml"} {
			if text := p.typed(2, command, c.says...); text != "" {
				t.Errorf("%s: on standard output: %s", name, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "postern-data")); err == nil {
		t.Error("a data directory was made for a configuration that is not valid")
	}
}
