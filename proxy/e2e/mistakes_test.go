package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistakes are configurations that are refused, each with SECRET near the mistake.
var mistakes = map[string]string{
	"port of a url":           `endpoints: [{ name: a, url: "https://u:SECRET@h:99999/SECRET?t=SECRET" }]`,
	"scheme of a url":         `endpoints: [{ name: a, url: "ftp://u:SECRET@h/SECRET?t=SECRET" }]`,
	"blank in a url":          `endpoints: [{ name: a, url: "https://u:SECRET@h/ SECRET?t=SECRET" }]`,
	"fragment of a url":       `endpoints: [{ name: a, url: "https://h/?t=SECRET#SECRET" }]`,
	"match with user info":    `endpoints: [{ name: a, url: "https://h/", match: ["https://u:SECRET@h/?SECRET"] }]`,
	"two of one name":         `endpoints: [{ name: a, url: "https://h/?SECRET" }, { name: a, url: "https://h/?SECRET" }]`,
	"proxy's scheme":          `outbound_proxy: "ftp://u:SECRET@proxy.example"`,
	"proxy's port":            `outbound_proxy: "http://u:SECRET@proxy.example:port"`,
	"proxy's host":            `outbound_proxy: "http://u:SECRET@"`,
	"header as a list":        `endpoints: [{ name: a, url: "https://h/", headers: { set: { X-Key: ["SECRET"] } } }]`,
	"header with a break":     "endpoints: [{ name: a, url: \"https://h/\", headers: { set: { X-Key: \"SECRET\\nSECRET\" } } }]",
	"header's name":           `endpoints: [{ name: a, url: "https://h/", headers: { set: { "X Key": "SECRET" } } }]`,
	"secret that is no list":  `endpoints: [{ name: a, url: "https://h/", sign: { scheme: standard, secrets: "SECRET" } }]`,
	"secret that is no text":  `endpoints: [{ name: a, url: "https://h/", sign: { scheme: standard, secrets: ["SECRET!"] } }]`,
	"secret as a mapping":     `endpoints: [{ name: a, url: "https://h/", sign: { scheme: stripe, secrets: [{ value: "SECRET" }] } }]`,
	"scheme of a signature":   `endpoints: [{ name: a, url: "https://h/", sign: { scheme: strype, secrets: ["SECRET"] } }]`,
	"secret's variable":       `endpoints: [{ name: a, url: "https://h/", sign: { scheme: stripe, secrets: ["SECRET${"] } }]`,
	"dsn as a mapping":        `sync: { dsn: { password: "SECRET" } }`,
	"dsn twice":               "sync:\n  dsn: \"postgres://u:SECRET@h/d\"\n  dsn: \"postgres://u:SECRET@h/d\"",
	"dsn's variable":          `sync: { dsn: "postgres://u:SECRET@h/${", interval: 1s }`,
	"text that does not end":  "sync: { dsn: \"postgres://u:SECRET@h/d }\n",
	"brace that does not end": `endpoints: [{ name: a, url: "https://h/?SECRET", headers: { set: { X-Key: "SECRET"`,
	"tab for a blank":         "sync:\n\tdsn: postgres://u:SECRET@h/d",
	"unknown key":             `sync: { dns: "postgres://u:SECRET@h/d" }`,
	"unknown key at the top":  `password: "SECRET"`,
	"key for a key file":      `endpoints: [{ name: a, url: "https://h/", tls: { key_file: "-----BEGIN PRIVATE KEY----- SECRET", cert_file: postern.yaml } }]`,
	"token for a token file":  `token_file: "SECRET"`,
	"key for a file of one":   `endpoints: [{ name: a, url: "https://h/", tls: { key_file: "SECRET", cert_file: postern.yaml } }]`,
	"key for the spool's":     `spool: { encryption_key_files: ["SECRET"] }`,
	"something after it":      "sync: { dsn: \"SECRET\" }\n---\nsync: { dsn: \"SECRET\" }",
}

// A mistake in the configuration is told without what stands beside it, by the check, at the start and at a reload.
func TestMistakesShowNoSecret(t *testing.T) {
	t.Parallel()
	var hidden secrets
	p := startPostern(t, calm)
	for name, text := range mistakes {
		p.configure(strings.ReplaceAll(text, "SECRET", hidden.next("MISTAKE")))
		for _, command := range []string{"config check", "run", "config show", "status"} {
			stdout, stderr, code := p.run(append(strings.Fields(command), "--config", "postern.yaml")...)
			if found := hidden.in(stdout + stderr); len(found) > 0 || code == 0 && command != "status" {
				t.Errorf("%s: postern %s exits with %d and shows %v: %s%s", name, command, code, found, stdout, stderr)
			}
		}
		p.reload()
		if log := p.log.String(); strings.Contains(log, "configuration reloaded") || len(hidden.in(log)) > 0 {
			t.Fatalf("%s: the log of a reload: %s", name, log)
		}
	}
}

// Passwords of an outbound proxy and of a Postgres that cannot be reached, and tokens right and wrong.
func TestSecretsOfConnectionsStayHidden(t *testing.T) {
	t.Parallel()
	var hidden secrets
	proxy := newReceiver(t, script(reply{Status: 407, Body: hidden.next("PROXYANSWER"), Header: map[string]string{"Proxy-Authenticate": "Basic realm=" + hidden.next("REALM")}}))
	p := newPostern(t, fmt.Sprintf(`
log: { level: debug }
targets: { allow_private: true }
token_file: token
defaults: { timeout: 1s, retry: { max_attempts: 1 } }
outbound_proxy: "http://pu:%s@%s"
sync: { dsn: "postgres://su:%s@%s/d?sslmode=disable&connect_timeout=1", interval: 100ms }
`, hidden.next("PROXYPW"), proxy.addr(), hidden.next("DSNPW"), freeAddr(t)))
	token := hidden.next("TOKEN")
	p.secretFile("token", token)
	p.start()
	wrong := p.send("POST", "/http://h.example/", "x", "Postern-Token: "+hidden.next("WRONGTOKEN"))
	if wrong.Status != 401 || len(hidden.in(string(wrong.Body))) > 0 {
		t.Errorf("a wrong token: status %d: %s", wrong.Status, wrong.Body)
	}
	for _, scheme := range []string{"http", "https"} {
		url := fmt.Sprintf("/%s://u:%s@127.0.0.1:9/%s?q=%s", scheme, hidden.next("PW"), hidden.next("PATH"), hidden.next("QUERY"))
		p.waitState(p.accept("POST", url, "x", "Postern-Token: "+token), "dead_letter", patience)
	}
	p.eventually(patience, "the log to tell that Postgres cannot be reached", func() bool { return strings.Contains(p.log.String(), "sync waits") })
	for _, place := range []string{"/metrics", "/api/v1/status", "/api/v1/events", "/api/v1/dead-letters", "/api/v1/sync/refused", "/api/v1/endpoints"} {
		if text := p.get(place); len(hidden.in(text)) > 0 {
			t.Errorf("%s shows %v", place, hidden.in(text))
		}
	}
	if stdout, stderr, code := p.run("config", "show", "--config", "postern.yaml"); code != 0 || len(hidden.in(stdout+stderr)) > 0 {
		t.Errorf("config show: exit code %d: %s%s", code, stdout, stderr)
	}
	p.configure("outbound_proxy: \"http://pu:" + hidden.next("NEWPW") + "@h\"\ntoken_file: token\nsync: { dsn: \"host=h user=u password='" + hidden.next("NEWDSN") + " x\" }\n")
	p.reload()
	p.stop(patience)
	if found := hidden.in(p.log.String()); len(found) > 0 {
		t.Errorf("the log shows %v", found)
	}
}

// A connection string that nothing can read is told with its place, and does not replace the one in force.
func TestReloadRefusesABadConnectionString(t *testing.T) {
	t.Parallel()
	var hidden secrets
	p := startPostern(t, "")
	p.configure("sync: { dsn: \"postgres:/" + hidden.next("NEWDSN") + "\" }\n")
	p.reload()
	log := p.log.String()
	if !strings.Contains(log, "the running configuration stays in force") || !strings.Contains(log, "sync.dsn: it begins like a URL") {
		t.Errorf("the log is\n%s", log)
	}
	if found := hidden.in(log); len(found) > 0 {
		t.Errorf("the log shows %v", found)
	}
}

// What is typed wrong is told without repeating what is secret in it: terminals and CI jobs keep what they print.
func TestCommandsShowNoSecret(t *testing.T) {
	t.Parallel()
	var hidden secrets
	p := startPostern(t, "")
	s := func() string { return hidden.next("TYPED") }
	if err := os.WriteFile(filepath.Join(p.dir, "captured"), []byte("POST /?q="+s()+" HTTP/1.1\r\nX-Hub-Signature-256: sha256="+s()+"\r\n\r\n"+s()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.secretFile("secret", s())
	for _, args := range [][]string{
		{"send", "ftp://u:" + s() + "@h/" + s() + "?q=" + s()},
		{"send", "http://u:" + s() + "@h /" + s() + "?q=" + s()},
		{"send", "http://u:" + s() + "@169.254.169.254/" + s() + "?q=" + s(), "-d", s(), "-H", "X-Key: " + s()},
		{"send", "http://u:" + s() + "@127.0.0.1/" + s() + "?q=" + s(), "--idempotency-key", s()},
		{"send", "http://h.example/", "-H", s()},
		{"send", "--to", "nobody", "/" + s() + "?q=" + s()},
		{"send", "http://h.example/?q=" + s(), "--ingest", "http://u:" + s() + "@127.0.0.1:1/"},
		{"send", "http://h.example/?q=" + s(), "--ingest", "127.0.0.1:1"},
		{"status", "--admin", "http://u:" + s() + "@127.0.0.1:1/?q=" + s()},
		{"healthcheck", "--admin", "http://u:" + s() + "@127.0.0.1:1"},
		{"fleet", "status", "--dsn", "postgres://u:" + s() + "@127.0.0.1:1/d"},
		{"fleet", "status", "--dsn", "postgres://u:" + s() + "@127.0.0.1:port/d?password=" + s()},
		{"fleet", "status", "--dsn", "host=127.0.0.1 port=1 user=u password=" + s()},
		{"sync", "migrate", "--dsn", "postgres://u:" + s() + "@127.0.0.1:1/d"},
		{"run", "--sync-dsn", "host=h port=x password=" + s(), "--listen", "nowhere"},
		{"verify", "--scheme", "hub", "--secret-file", "secret", "--raw", "captured"},
		{"verify", "--scheme", "standard", "--secret-file", "secret", "--raw", "captured"},
	} {
		stdout, stderr, code := p.run(args...)
		if found := hidden.in(stdout + stderr); len(found) > 0 || code == 0 || stdout+stderr == "" {
			t.Errorf("postern %s: exit code %d, shows %v: %s%s", strings.Join(args, " "), code, found, stdout, stderr)
		}
	}
	if n := p.metric("postern_accepted_total"); n != 0 {
		t.Errorf("%v events were accepted", n)
	}
	if found := hidden.in(p.log.String()); len(found) > 0 {
		t.Errorf("the log shows %v", found)
	}
}
