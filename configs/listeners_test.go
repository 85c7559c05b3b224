package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListeners(t *testing.T) {
	const ours = "listen: 127.0.0.1:9089\ntoken_file: in.token\nadmin:\n  listen: unix:/run/a.sock\n  token_file: /etc/admin.token\n"
	type places struct{ ingest, ingestToken, admin, adminToken string }
	standard := places{"127.0.0.1:8089", "", "127.0.0.1:8090", ""}
	theirs := places{"127.0.0.1:9089", "DIR/in.token", "unix:/run/a.sock", "/etc/admin.token"}
	for _, c := range []struct {
		name, text            string
		o                     Options
		want                  places
		ingestSays, adminSays string // in the error: the address cannot be told
		aside                 string
	}{
		{name: "all four", text: ours, want: theirs},
		{name: "none", text: "concurrency: 7\n", want: standard},
		{name: "nothing set on purpose", text: "{}\n", want: standard},
		{name: "empty", want: standard, ingestSays: "postern.yaml: the file has no key at all: was it cut off? Write {} into it", adminSays: "no key at all"},
		{name: "comments alone", text: "# listen: 127.0.0.1:9089\n", want: standard, ingestSays: "no key at all", adminSays: "no key at all"},
		{name: "empty, and flags", o: Options{Listen: ":1", AdminListen: "unix:b"}, want: places{":1", "", "unix:b", ""}, aside: "no key at all"},
		{name: "flow style", text: "{listen: 127.0.0.1:9089, token_file: in.token, admin: {listen: unix:/run/a.sock, token_file: /etc/admin.token}}", want: theirs},
		{name: "mistakes elsewhere", text: ours + "spool: { dri: x }\ntimout: 3\nendpoints: [{ name: a, url: nonsense }]\n", want: theirs},
		{name: "mistakes elsewhere, at the default", text: "spool: { dri: x }\ntimout: 3s\nendpoints: [{ name: a, url: nonsense }]\n", want: standard},
		{name: "a secret that is not there", text: ours + "endpoints:\n  - { name: a, url: 'https://p.example', sign: { scheme: hub, secrets: ['${UNSET_SEC}', 'file:absent'] } }\n", want: theirs},
		{name: "an unknown key beside it", text: "admin: { listen: unix:/run/a.sock, token_flie: x }\n", want: places{standard.ingest, "", "unix:/run/a.sock", ""}},
		{name: "no YAML further down", text: "spool: { dir: [\n" + ours, want: theirs},
		{name: "no YAML in a text", text: ours + "endpoints:\n\t- name: a\n", want: theirs},
		{name: "a section without its lines", text: "admin:\n", want: standard},
		{name: "flags win", text: ours, o: Options{Listen: ":1", AdminListen: "unix:b"}, want: places{":1", "DIR/in.token", "unix:b", "/etc/admin.token"}},
		{name: "flags win over nonsense", text: "\t: [\n", o: Options{Listen: ":1", AdminListen: "unix:b"}, want: places{":1", "", "unix:b", ""}, aside: "postern.yaml:1:1: not valid YAML"},
		{name: "a token file that is none", text: "admin: { listen: unix:b, token_file: [a] }\nlisten: 127.0.0.1:9089\n", want: places{"127.0.0.1:9089", "", "unix:b", ""}, aside: "admin.token_file"},

		{name: "no YAML at all", text: "\t: [\n", want: standard, ingestSays: "postern.yaml:1:1: not valid YAML", adminSays: "postern.yaml:1:1: not valid YAML"},
		{name: "no YAML, one address", text: "spool: { dir: [\nlisten: 127.0.0.1:9089\n", want: places{"127.0.0.1:9089", "", standard.admin, ""}, adminSays: "not valid YAML"},
		{name: "no YAML, a bad address", text: "spool: { dir: [\n\nadmin: { listen: 8090 }\nlisten: 127.0.0.1:9089\n", want: places{"127.0.0.1:9089", "", standard.admin, ""}, adminSays: "postern.yaml:3:18: admin.listen: "},
		{name: "no mapping", text: "- listen: 127.0.0.1:9089\n", want: standard, ingestSays: "postern.yaml:1:1: a mapping", adminSays: "a mapping"},
		{name: "a second document", text: "concurrency: 7\n---\n" + ours, want: standard, ingestSays: "second YAML document", adminSays: "second YAML document"},
		{name: "a section that is none", text: "admin: 8090\nlisten: 127.0.0.1:9089\n", want: places{"127.0.0.1:9089", "", standard.admin, ""}, adminSays: "postern.yaml:1:8: admin: a section"},
		{name: "an address that is none", text: "admin: { listen: 8090 }\nlisten: 127.0.0.1:9089\n", want: places{"127.0.0.1:9089", "", standard.admin, ""}, adminSays: "postern.yaml:1:18: admin.listen: "},
		{name: "addresses that are missing", text: "admin: { listen: }\nlisten:\n", want: standard, ingestSays: "postern.yaml:2:9: listen: the value is missing", adminSays: "admin.listen: the value is missing"},
		{name: "a variable", text: "admin: { listen: 'unix:${RUN}/x' }\n", want: standard, adminSays: "admin.listen: ${VAR} works only"},
		{name: "mistyped keys", text: "admin: { lisen: 127.0.0.1:1 }\nlisen: 127.0.0.1:2\n", want: standard, ingestSays: "postern.yaml:2:1: lisen: unknown key; did you mean listen?", adminSays: "postern.yaml:1:10: admin.lisen: unknown key; did you mean listen?"},
		{name: "any unknown key in its place", text: "admin: { port: 9090 }\n", want: standard, adminSays: "admin.port: unknown key"},
		{name: "a mistyped section", text: "adnim: { lisen: 127.0.0.1:1 }\nlisten: 127.0.0.1:9089\n", want: places{"127.0.0.1:9089", "", standard.admin, ""}, adminSays: "adnim: unknown key"},
		{name: "another word for it", text: "api: { listen: 127.0.0.1:1 }\ningress: 127.0.0.1:2\n", want: standard, ingestSays: "ingress: unknown key", adminSays: "api: unknown key"},
		{name: "indented too far", text: "log:\n  level: info\n  admin: { listen: 127.0.0.1:1 }\n  listen: 127.0.0.1:2\n", want: standard, ingestSays: "log.listen: unknown key", adminSays: "log.admin: unknown key"},
		{name: "keys twice", text: "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\nadmin: { listen: unix:a }\nadmin: { listen: unix:b }\n", want: places{"127.0.0.1:1", "", "unix:a", ""}, ingestSays: "postern.yaml:2:1: listen: the key is there twice", adminSays: "postern.yaml:4:1: admin: the key is there twice"},
		{name: "flags that are no addresses", text: "{}", o: Options{Listen: "nowhere", AdminListen: "8090"}, ingestSays: "--listen: listen: ", adminSays: "--admin-listen: admin.listen: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.o.Path, c.o.Getenv = filepath.Join(dir, "postern.yaml"), func(string) (string, bool) { return "", false }
			if err := os.WriteFile(c.o.Path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			ingest, ingestAside, ingestErr := IngestListener(c.o)
			admin, adminAside, adminErr := AdminListener(c.o)
			got := places{ingest.Address, strings.Replace(ingest.TokenFile, dir, "DIR", 1), admin.Address, strings.Replace(admin.TokenFile, dir, "DIR", 1)}
			if got != c.want && c.o.Listen != "nowhere" {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			for _, e := range []struct {
				err  error
				says string
			}{{ingestErr, c.ingestSays}, {adminErr, c.adminSays}, {errors.Join(ingestAside, adminAside), c.aside}} {
				if (e.err != nil) != (e.says != "") || e.err != nil && !strings.Contains(e.err.Error(), e.says) {
					t.Errorf("the error is %v, want %q", e.err, e.says)
				}
			}
		})
	}
}

func TestListenersOfAFileThatIsNotThere(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "absent.yaml"), AdminListen: "unix:a", Getenv: func(string) (string, bool) { return "", false }}
	if _, aside, err := IngestListener(o); aside != nil || err == nil || !strings.Contains(err.Error(), "absent.yaml") {
		t.Errorf("%v, %v", aside, err)
	}
	if admin, aside, err := AdminListener(o); admin.Address != "unix:a" || aside == nil || err != nil {
		t.Errorf("where the address is given: %v, %v, %v", admin, aside, err)
	}
}
