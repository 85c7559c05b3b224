package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCentral(t *testing.T) {
	const ours = "sync:\n  dsn: postgres://db/fleet\n  schema: ours\n"
	for _, c := range []struct {
		name, text   string
		o            Options
		env          string // POSTERN_SYNC_DSN
		dsn, schema  string
		says, others string // of the two errors; empty: none
	}{
		{name: "both", text: ours, dsn: "postgres://db/fleet", schema: "ours"},
		{name: "none", text: "concurrency: 7\n", schema: "postern"},
		{name: "the environment", env: "host=env", dsn: "host=env", schema: "postern"},
		{name: "the file wins", text: ours, env: "host=env", dsn: "postgres://db/fleet", schema: "ours"},
		{name: "a variable", text: "sync: { dsn: '${POSTERN_SYNC_DSN}' }\n", env: "host=env", dsn: "host=env", schema: "postern"},
		{name: "a flag wins", text: ours, o: Options{SyncDSN: "host=flag"}, dsn: "host=flag", schema: "ours"},
		{name: "mistakes elsewhere", text: ours + "spool: { dri: x }\nlisten: 0.0.0.0:1\n", dsn: "postgres://db/fleet", schema: "ours", others: "spool.dri"},
		{name: "a secret that is not there", text: ours + "outbound_proxy: '${UNSET}'\n", dsn: "postgres://db/fleet", schema: "ours", others: "UNSET"},
		{name: "no YAML further up", text: "spool: { dir: [\n" + ours, dsn: "postgres://db/fleet", schema: "ours", others: "not valid YAML"},
		{name: "no YAML, and a flag", text: "spool: { dir: [\n", o: Options{SyncDSN: "host=flag"}, dsn: "host=flag", schema: "postern", others: "not valid YAML"},
		{name: "no YAML, and nobody names a Postgres", text: "spool: { dir: [\n", schema: "postern", says: "not valid YAML"},
		{name: "a slip in ours", text: "sync: { dns: x }\nspool: { dri: x }\n", schema: "postern", says: "sync.dns", others: "spool.dri"},
		{name: "a schema that is none", text: "sync: { schema: 'a b' }\n", schema: "postern", says: "sync.schema"},
		{name: "ours is no section", text: "sync: postgres://db\n", schema: "postern", says: "sync"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Path = filepath.Join(t.TempDir(), "postern.yaml")
			c.o.Getenv = func(name string) (string, bool) { return c.env, name == dsnEnv && c.env != "" }
			if err := os.WriteFile(c.o.Path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, other, err := Central(c.o)
			if cfg.Sync.DSN != c.dsn || cfg.Sync.Schema != c.schema {
				t.Errorf("%q in %q, want %q in %q", cfg.Sync.DSN, cfg.Sync.Schema, c.dsn, c.schema)
			}
			says(t, err, c.says)
			says(t, other, c.others)
		})
	}
}

func says(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// TestCentralKeepsPolicies: what an endpoint's policy says is there although a secret of it is not.
func TestCentralKeepsPolicies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "postern.yaml")
	text := "endpoints:\n  - { name: a, url: 'https://p.example/pb', headers: { set: { X-Key: '${UNSET}' } }, retry: { max_attempts: 9 } }\ndefaults: { timeout: 3s }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, other, err := Central(Options{Path: path, Getenv: func(string) (string, bool) { return "", false }})
	if err != nil || other == nil || len(c.Endpoints) != 1 {
		t.Fatalf("%+v, %v, %v", c.Endpoints, other, err)
	}
	if e := c.Endpoints[0]; e.URL.WithoutQuery() != "https://p.example/pb" || e.Policy.Retry.MaxAttempts != 9 || e.Policy.Timeout != 3*time.Second {
		t.Errorf("%+v", e)
	}
}

func TestCentralOfAFileThatIsNotThere(t *testing.T) {
	_, _, err := Central(Options{Path: filepath.Join(t.TempDir(), "absent.yaml"), Getenv: func(string) (string, bool) { return "", false }})
	says(t, err, "absent.yaml")
}
