package configs

import (
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
		name, text string
		o          Options
		want       places
		says       string
	}{
		{"all four", ours, Options{}, theirs, ""},
		{"none", "concurrency: 7\n", Options{}, standard, ""},
		{"empty", "", Options{}, standard, ""},
		{"flow style", "{listen: 127.0.0.1:9089, token_file: in.token, admin: {listen: unix:/run/a.sock, token_file: /etc/admin.token}}", Options{}, theirs, ""},
		{"mistakes elsewhere", ours + "spool: { dri: x }\ntimout: 3\nendpoints: [{ name: a, url: nonsense }]\n", Options{}, theirs, ""},
		{"a secret that is not there", ours + "endpoints:\n  - { name: a, url: 'https://p.example', sign: { scheme: hub, secrets: ['${UNSET_SEC}', 'file:absent'] } }\n", Options{}, theirs, ""},
		{"an unknown key beside them", "admin: { listen: unix:/run/a.sock, token_flie: x }\n", Options{}, places{standard.ingest, "", "unix:/run/a.sock", ""}, ""},
		{"no YAML further down", "spool: { dir: [\n" + ours, Options{}, theirs, ""},
		{"no YAML in a text", ours + "endpoints:\n\t- name: a\n", Options{}, theirs, ""},
		{"no YAML at all", "\t: [\n", Options{}, standard, "not valid YAML"},
		{"a section without its lines", "admin:\nlisten:\n", Options{}, standard, ""},
		{"a section that is none", "admin: 8090\nlisten: 127.0.0.1:9089\n", Options{}, places{"127.0.0.1:9089", "", standard.admin, ""}, ""},
		{"an address that is none", "admin: { listen: 8090 }\nlisten: 127.0.0.1:9089\n", Options{}, places{"127.0.0.1:9089", "", standard.admin, ""}, "admin.listen"},
		{"a variable", "admin: { listen: 'unix:${RUN}/x' }\n", Options{}, standard, "admin.listen"},
		{"flags win", ours, Options{Listen: ":1", AdminListen: "unix:b"}, places{":1", "DIR/in.token", "unix:b", "/etc/admin.token"}, ""},
		{"a key twice", "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", Options{}, places{"127.0.0.1:1", "", standard.admin, ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.o.Path, c.o.Getenv = filepath.Join(dir, "postern.yaml"), func(string) (string, bool) { return "", false }
			if err := os.WriteFile(c.o.Path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			ingest, admin, err := Listeners(c.o)
			got := places{ingest.Address, strings.Replace(ingest.TokenFile, dir, "DIR", 1), admin.Address, strings.Replace(admin.TokenFile, dir, "DIR", 1)}
			if got != c.want {
				t.Errorf("got %+v, want %+v (%v)", got, c.want, err)
			}
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %q", err, c.says)
			}
		})
	}
}

func TestListenersOfAFileThatIsNotThere(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	ingest, admin, err := Listeners(Options{Path: filepath.Join(t.TempDir(), "absent.yaml"), AdminListen: "unix:a", Getenv: none})
	if err == nil || !strings.Contains(err.Error(), "absent.yaml") || ingest.Address != "127.0.0.1:8089" || admin.Address != "unix:a" {
		t.Errorf("%v, %v, %v", ingest, admin, err)
	}
}
