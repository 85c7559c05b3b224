package configs

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// env is an environment for Options.Getenv.
type env map[string]string

func (e env) get(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// write puts a file into dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadText loads a postern.yaml with this text from a directory of its own.
func loadText(t *testing.T, text string, e env) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "postern.yaml", text)
	return Load(Options{Dir: dir, Getenv: e.get})
}

// mustLoad is loadText of a text without mistakes.
func mustLoad(t *testing.T, text string, e env) *Config {
	t.Helper()
	c, err := loadText(t, text, e)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "flag.yaml", "concurrency: 1")
	write(t, dir, "env.yaml", "concurrency: 2")
	empty := t.TempDir()
	withDefault := t.TempDir()
	write(t, withDefault, "postern.yaml", "concurrency: 3")
	absolute := filepath.Join(dir, "flag.yaml")

	for _, tc := range []struct {
		name string
		o    Options
		file string
		want int
	}{
		{"flag before environment", Options{Dir: dir, Path: "flag.yaml", Getenv: env{"POSTERN_CONFIG": "env.yaml"}.get}, "flag.yaml", 1},
		{"absolute path", Options{Dir: empty, Path: absolute, Getenv: env{}.get}, absolute, 1},
		{"environment", Options{Dir: dir, Getenv: env{"POSTERN_CONFIG": "env.yaml"}.get}, "env.yaml", 2},
		{"environment before postern.yaml", Options{Dir: withDefault, Getenv: env{"POSTERN_CONFIG": filepath.Join(dir, "env.yaml")}.get}, filepath.Join(dir, "env.yaml"), 2},
		{"an empty variable is none", Options{Dir: withDefault, Getenv: env{"POSTERN_CONFIG": ""}.get}, "postern.yaml", 3},
		{"postern.yaml", Options{Dir: withDefault, Getenv: env{}.get}, "postern.yaml", 3},
		{"no file", Options{Dir: empty, Getenv: env{}.get}, "", 256},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Load(tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if c.Concurrency != tc.want || c.File != tc.file {
				t.Errorf("file %q with concurrency %d, want %q with %d", c.File, c.Concurrency, tc.file, tc.want)
			}
		})
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "postern.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		o    Options
		want []string
	}{
		"flag":        {Options{Dir: dir, Path: "no.yaml"}, []string{"no.yaml: ", "no such file", "--config"}},
		"environment": {Options{Dir: dir, Getenv: env{"POSTERN_CONFIG": "no.yaml"}.get}, []string{"no.yaml: ", "no such file", "unset POSTERN_CONFIG"}},
		"a directory": {Options{Dir: dir}, []string{"postern.yaml: ", "directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.o.Getenv == nil {
				tc.o.Getenv = env{}.get
			}
			_, err := Load(tc.o)
			problem, ok := errors.AsType[*Problem](err)
			if !ok {
				t.Fatalf("error %v is not a *Problem", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(problem.Error(), want) {
					t.Errorf("%q does not say %q", problem, want)
				}
			}
		})
	}
}

func TestFlagsOverrideTheFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "postern.yaml", `
listen: 127.0.0.1:1
admin: { listen: 127.0.0.1:2 }
spool: { dir: from-file }
sync: { dsn: from-file }
`)
	c, err := Load(Options{
		Dir: dir, Listen: "127.0.0.1:3", AdminListen: "unix:/run/admin.sock", Data: "/data", SyncDSN: "from-flag",
		Getenv: env{"POSTERN_SYNC_DSN": "from-env"}.get,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Listen.Address, c.Admin.Address, c.Spool.Dir, c.Sync.DSN}
	want := []string{"127.0.0.1:3", "unix:/run/admin.sock", "/data", "from-flag"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

// A mistake in a value that a flag replaces is still a mistake in the file; one in a flag names the flag, or the variable that
// the command line took it from.
func TestMistakesInFlags(t *testing.T) {
	_, err := Load(Options{Dir: t.TempDir(), Listen: "8089", AdminListen: "0.0.0.0:8090", Data: " ", SyncDSN: "a\nb", Getenv: env{"POSTERN_LISTEN": "8089"}.get})
	for _, want := range []string{
		`POSTERN_LISTEN: listen: "8089" is not an address to listen on`,
		`--admin-listen: admin.listen: "0.0.0.0:8090" is reachable from other machines and needs a token`,
		`--data: spool.dir: the path begins or ends with a blank`,
		`--sync-dsn: sync.dsn: the value has a line break (a control character) in it`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestSyncDSN(t *testing.T) {
	for _, tc := range []struct {
		name, yaml string
		env        env
		want       string
	}{
		{"from the environment without a word in the file", "", env{"POSTERN_SYNC_DSN": "postgres://x\n"}, "postgres://x"},
		{"unset means empty", "sync: { dsn: \"${POSTERN_SYNC_DSN}\" }", env{}, ""},
		{"any variable", "sync: { dsn: \"${DB}\" }", env{"DB": "postgres://y"}, "postgres://y"},
		{"empty in the file is no sync", "sync: { dsn: \"\" }", env{"POSTERN_SYNC_DSN": "postgres://x"}, ""},
		{"a password inside", "sync: { dsn: \"postgres://u:${PW}@db/x\" }", env{"PW": "p$${x}"}, "postgres://u:p$${x}@db/x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := mustLoad(t, tc.yaml, tc.env).Sync.DSN; got != tc.want {
				t.Errorf("dsn %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSyncDSNIsChecked by the one who knows Postgres, wherever it was written; what could not be read is told once.
func TestSyncDSNIsChecked(t *testing.T) {
	refuse := func(dsn string) error {
		if strings.Contains(dsn, "good") {
			return nil
		}
		return errors.New("no connection string")
	}
	for _, tc := range []struct {
		yaml, flag string
		env        env
		says       string
	}{
		{yaml: "sync: { dsn: good }", says: ""},
		{yaml: "sync: { dsn: \"\" }", says: ""},
		{yaml: "sync: { dsn: bad }", says: "postern.yaml:1:14: sync.dsn: no connection string"},
		{yaml: "sync: { dsn: \" \" }", says: "postern.yaml:1:14: sync.dsn: the value is nothing but blanks; write a connection string, or remove the key for no sync"},
		{yaml: "sync: { dsn: good }", flag: "bad", says: "--sync-dsn: sync.dsn: no connection string"},
		{yaml: "{}", env: env{"POSTERN_SYNC_DSN": "bad"}, says: "POSTERN_SYNC_DSN: sync.dsn: no connection string"},
		{yaml: "sync: { dsn: \"${A}${UNSET}\" }", env: env{"A": "bad"}, says: "postern.yaml:1:14: sync.dsn: the environment variable UNSET is not set; set it, or use file:PATH"},
	} {
		dir := t.TempDir()
		write(t, dir, "postern.yaml", tc.yaml+"\n")
		o := Options{Dir: dir, SyncDSN: tc.flag, CheckDSN: refuse, Getenv: tc.env.get}
		_, err := Load(o)
		_, _, central := Central(o)
		for _, err := range []error{err, central} {
			if (err == nil) != (tc.says == "") || err != nil && err.Error() != tc.says {
				t.Errorf("%s: %v, want %q", tc.yaml, err, tc.says)
			}
		}
	}
}

func TestDev(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "postern.yaml", `
log: { format: json }
defaults: { retry: { schedule: [1s, 1h] } }
endpoints:
  - { name: quick, url: http://partner.example/, retry: { max_attempts: 9, base_delay: 10ms, max_delay: 20ms }, breaker: { cooldown: 1s, max_cooldown: 2s } }
  - { name: plain, url: http://partner.example/ }
`)
	c, err := Load(Options{Dir: dir, Dev: true, Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Dev || !c.Targets.AllowPrivate || c.Log.Format != "text" {
		t.Errorf("dev %v, allow_private %v, format %s", c.Dev, c.Targets.AllowPrivate, c.Log.Format)
	}
	quick, plain := c.Endpoints[0].Policy, c.Endpoints[1].Policy
	if quick.Retry.BaseDelay != 10*time.Millisecond || quick.Retry.MaxDelay != 20*time.Millisecond || quick.Breaker.Cooldown != time.Second {
		t.Errorf("--dev made a delay longer: %+v", quick)
	}
	if plain.Retry.BaseDelay != 500*time.Millisecond || plain.Retry.MaxDelay != 5*time.Second || plain.Breaker.Cooldown != 5*time.Second {
		t.Errorf("--dev left a delay long: %+v", plain)
	}
	for _, p := range []Policy{plain, c.Defaults} {
		if s := p.Retry.Schedule; len(s) != 2 || s[0] != time.Second || s[1] != 5*time.Second {
			t.Errorf("schedule %v, want [1s 5s]", s)
		}
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "etc")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, sub, "token", "T1\n")
	write(t, sub, "key", "K1\r\n")
	write(t, sub, "p.yaml", `
token_file: token
spool: { dir: data }
endpoints: [{ name: a, url: "http://partner.example/", headers: { set: { X-Key: "file:key" } } }]
`)
	c, err := Load(Options{Dir: dir, Path: "etc/p.yaml", Getenv: env{}.get})
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Listen.Token) != "T1" || c.Listen.TokenFile != filepath.Join(sub, "token") {
		t.Errorf("token %q of %s", c.Listen.Token, c.Listen.TokenFile)
	}
	if got := c.Endpoints[0].Policy.Headers.Set[0].Value; got != "K1" {
		t.Errorf("header %q, want K1", got)
	}
	if c.Spool.Dir != filepath.Join(dir, "data") {
		t.Errorf("spool.dir is %s", c.Spool.Dir)
	}
}

// A bound that nobody set follows a smaller spool; one that was set is never changed behind the operator's back.
func TestBoundsShrinkWithTheSpool(t *testing.T) {
	c := mustLoad(t, "spool: { max_bytes: 2MiB }", nil)
	if c.Spool.MaxEventBytes != mib/2 || c.Spool.HistoryMaxBytes != mib/4 || c.Sync.MaxBacklogBytes != mib/16*3 {
		t.Errorf("event %d, history %d, backlog %d", c.Spool.MaxEventBytes, c.Spool.HistoryMaxBytes, c.Sync.MaxBacklogBytes)
	}
	c = mustLoad(t, "spool: { max_bytes: 1MiB }", nil)
	if c.Spool.MaxEventBytes != mib/4 || c.Spool.HistoryMaxBytes != mib/8 || c.Sync.MaxBacklogBytes != mib/32*3 {
		t.Errorf("the smallest spool: event %d, history %d, backlog %d", c.Spool.MaxEventBytes, c.Spool.HistoryMaxBytes, c.Sync.MaxBacklogBytes)
	}
	c = mustLoad(t, "spool: { max_bytes: 100GiB }", nil)
	if c.Spool.MaxEventBytes != mib || c.Spool.HistoryMaxBytes != 64*mib || c.Sync.MaxBacklogBytes != 48*mib {
		t.Errorf("a large spool raised a bound: %+v", c.Spool)
	}
}

func TestScalars(t *testing.T) {
	c := mustLoad(t, `
log: { level: warn, format: text }
shutdown_delay: 1m30s
concurrency: "7"
spool: { max_bytes: 64MB, max_event_bytes: 512KB, history_max_bytes: 4194304, max_endpoint_share: 1, delivered_retention: 0s }
targets: { ad_hoc: false, allow: [10.1.0.0/16, "*.Partner.example", 10.0.0.7, "[fd00::1]", localhost] }
outbound_proxy: http://u:p%40@proxy.example:3128
query_keys_in_logs: [cid, sub_id]
sync: { labels: { service: checkout, version: 1.10 }, payloads: all, schema: hooks_2 }
`, nil)
	if c.Log.Level != slog.LevelWarn || c.ShutdownDelay != 90*time.Second || c.Concurrency != 7 {
		t.Errorf("level %v, delay %v, concurrency %d", c.Log.Level, c.ShutdownDelay, c.Concurrency)
	}
	if c.Spool.MaxBytes != 64e6 || c.Spool.MaxEventBytes != 512e3 || c.Spool.HistoryMaxBytes != 4*mib || c.Spool.DeliveredRetention != 0 {
		t.Errorf("spool %+v", c.Spool)
	}
	if got := c.OutboundProxy.String(); got != "http://u:p%40@proxy.example:3128" {
		t.Errorf("proxy %s", got)
	}
	if c.Sync.Labels["version"] != "1.10" {
		t.Errorf("a number in a label was changed: %q", c.Sync.Labels["version"])
	}
	if got := strings.Join(c.Targets.Allow, " "); got != "10.1.0.0/16 *.partner.example 10.0.0.7 fd00::1 localhost" {
		t.Errorf("allow %s", got)
	}
}

// The keys of the spool are read from the files that the list names, relative to the configuration, the newest first.
func TestEncryptionKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	newest, old := strings.Repeat("N1", 16), strings.Repeat("O2", 16)
	write("new.key", base64.StdEncoding.EncodeToString([]byte(newest))+"\n")
	write("old.key", hex.EncodeToString([]byte(old)))
	write("postern.yaml", "spool: { encryption_key_files: [new.key, old.key] }\n")
	o := Options{Path: filepath.Join(dir, "postern.yaml"), Getenv: env{}.get}
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if keys := c.Spool.EncryptionKeys; len(keys) != 2 || string(keys[0]) != newest || string(keys[1]) != old {
		t.Errorf("the keys are %q", keys)
	}
	if shown := string(Show(c)); strings.Contains(shown, newest) || strings.Contains(shown, base64.StdEncoding.EncodeToString([]byte(newest))) || !strings.Contains(shown, "new.key") {
		t.Errorf("shown:\n%s", shown)
	}
	write("old.key", newest)
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "spool.encryption_key_files[1]: the file \"old.key\" has the same key as entry 1; remove one") {
		t.Errorf("one key twice: %v", err)
	}
}
