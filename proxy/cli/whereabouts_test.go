package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestABrokenConfigurationIsNoReasonToRestart: whether the running Postern is well does not depend on whether the file
// would start another one.
func TestABrokenConfigurationIsNoReasonToRestart(t *testing.T) {
	f := newFake(t, answers())
	address := strings.TrimPrefix(f.URL, "http://")
	admin := "admin: { listen: " + address + " }\n"
	for name, c := range map[string]struct{ text, hint string }{
		"a key that there is not":     {admin + "timout: 3s\n", ""},
		"a secret that is not set":    {admin + "endpoints:\n  - { name: a, url: 'https://a.example', headers: { set: { X-Key: '${NO_SUCH_SECRET}' } } }\n", ""},
		"a secret that is not there":  {admin + "endpoints:\n  - { name: a, url: 'https://a.example', sign: { scheme: hub, secrets: ['file:/absent'] } }\n", ""},
		"not YAML":                    {"spool: { dir: [\n" + admin, ""},
		"a token that cannot be read": {"admin: { listen: " + address + ", token_file: absent }\n", "no token is sent"},
		"the other listener's token":  {admin + "listen: 0.0.0.0:8089\ntoken_file: absent\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "postern.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, p := range []typed{{args: []string{"healthcheck", "--config", file}}, {args: []string{"healthcheck"}, env: map[string]string{"POSTERN_CONFIG": file}}} {
				got := p.run(t)
				if got.code != 0 || got.stdout != "ready\n" {
					t.Errorf("code %d: %s%s", got.code, got.stdout, got.stderr)
				}
				if (got.stderr != "") != (c.hint != "") || !strings.Contains(got.stderr, c.hint) {
					t.Errorf("the hint is %q, want %q", got.stderr, c.hint)
				}
			}
			if got := (typed{args: []string{"status", "--config", file}}).run(t); got.code != 0 {
				t.Errorf("status: code %d: %s", got.code, got.stderr)
			}
		})
	}
}

// TestAConfigurationThatLeavesOpenWhereTo: no command acts at the default address, where another Postern may be, when a
// configuration was named and does not tell.
func TestAConfigurationThatLeavesOpenWhereTo(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ file, says string }{
		"a mistyped key":       {file("key.yaml", "admin: { lisen: 127.0.0.1:1 }\nlisen: 127.0.0.1:2\n"), "key.yaml:"},
		"not YAML":             {file("broken.yaml", "a: [\n"), "broken.yaml:1:"},
		"not there":            {filepath.Join(dir, "absent.yaml"), "absent.yaml: "},
		"a folder, no file":    {dir, dir + ": "},
		"cut off":              {file("cut.yaml", ""), "was it cut off?"},
		"an address of no use": {file("bad.yaml", "admin: { listen: 8090 }\nlisten: 8089\n"), "bad.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{
				{"healthcheck"}, {"status"}, {"top"}, {"events", "list"}, {"events", "retry", "evt_1"}, {"endpoints", "pause", "a"}, {"endpoints"},
				{"dead-letters", "purge", "--all", "--yes"}, {"dead-letters", "replay", "--all"}, {"send", "https://p.example"},
			} {
				for _, p := range []typed{{args: append(args, "--config", c.file)}, {args: args, env: map[string]string{"POSTERN_CONFIG": c.file}}} {
					got := p.run(t)
					if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, c.says) || !strings.Contains(got.stderr, "give the address with --") {
						t.Errorf("%v: code %d: %s%s", p.args, got.code, got.stdout, got.stderr)
					}
				}
			}
		})
	}
}

// TestAnAddressNeedsNoConfiguration: who gives the address is not kept from it. The variable that run reads gives it too,
// but not the token, which is why the file's mistake is told then.
func TestAnAddressNeedsNoConfiguration(t *testing.T) {
	f := newFake(t, answers())
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	for _, c := range []struct {
		env   map[string]string
		args  []string
		hints bool
	}{
		{map[string]string{"POSTERN_CONFIG": absent, "POSTERN_ADMIN_LISTEN": strings.TrimPrefix(f.URL, "http://")}, nil, true},
		{map[string]string{"POSTERN_CONFIG": absent, "POSTERN_ADMIN": f.URL}, nil, false},
		{map[string]string{"POSTERN_CONFIG": absent}, []string{"--admin", f.URL}, false},
	} {
		got := typed{args: append([]string{"healthcheck"}, c.args...), env: c.env}.run(t)
		if got.code != 0 || got.stdout != "ready\n" || strings.Contains(got.stderr, "absent.yaml") != c.hints {
			t.Errorf("%v: code %d: %s%s", c.env, got.code, got.stdout, got.stderr)
		}
	}
}

func TestAConfigurationThatWasNotNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &session{atDefault: true}
	if got := s.forgotten(); got != "" {
		t.Errorf("without a file: %q", got)
	}
	if err := os.WriteFile("postern.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.forgotten(); !strings.Contains(got, "--config postern.yaml") {
		t.Errorf("with a file: %q", got)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	for _, args := range [][]string{{"status", "--admin", address}, {"send", "https://p.example", "--ingest", address}} {
		if got := (typed{args: args}).run(t); got.code != 1 || strings.Contains(got.stderr, "postern.yaml") {
			t.Errorf("%v, where the address was given: code %d, %s", args, got.code, got.stderr)
		}
	}
}
