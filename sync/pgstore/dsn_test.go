package pgstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"postern/sync/pgstore"
)

func TestCheckSyntax(t *testing.T) {
	for dsn, says := range map[string]string{
		"garbage SECRET":                                           "neither a URL nor keyword=value",
		"postgres:/SECRET":                                         "begins like a URL",
		"postgres:/SECRET@h/d?sslmode=disable":                     "begins like a URL",
		"mysql://u:SECRET@h/d?a=b":                                 "begins like a URL",
		"Postgres://u:SECRET@h/d":                                  "begins like a URL",
		"u:SECRET@h/d?sslmode=disable":                             "begins like a URL",
		"postgres://u:SECRET@h:99999/d":                            "the port is not a number",
		"postgres://u:x/SECRET@h/d":                                "the port is not a number",
		"postgres://u:SECRET%zz@h/d":                               "cannot be read as a URL",
		"postgres://u:SECRET@service.example:0/d":                  "the port is not a number",
		"postgres://u:SECRET@h1:1,h2:2,h3/d?port=1,2":              "as many ports as hosts",
		"host=h password=SECRET port=x":                            "the port is not a number",
		"host=h password='SECRET":                                  "quotes",
		"host=h password=SECRET SECRET":                            "quotes",
		"host=h password=SECRET sslmode=SECRET":                    "sslmode is none of",
		"host=h password=SECRET sslcert=x":                         "sslcert and sslkey belong together",
		"host=h password=SECRET connect_timeout=SECRET":            "connect_timeout",
		"host=h target_session_attrs=SECRET":                       "target_session_attrs",
		"host=h channel_binding=SECRET":                            "channel_binding",
		"host=h min_protocol_version=SECRET":                       "min_protocol_version",
		"host=h max_protocol_version=SECRET":                       "max_protocol_version",
		"host=h sslcertmode=SECRET":                                "sslcertmode",
		"host=h require_auth=SECRET":                               "require_auth",
		"host=h min_protocol_version=3.2 max_protocol_version=3.0": "min_protocol_version is more",
	} {
		err := pgstore.CheckSyntax(dsn)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "give postgres://") || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %q", dsn, err, says)
		}
	}
	for _, dsn := range []string{
		"", "host=h", "postgres://", "postgresql://u@h,h2/d", " host = h password = 'a b' ", "postgres://u:p%40@[::1]:5432/d?sslmode=verify-full",
		"host=/run/postgresql dbname=d", "host=h password=a=b", "service=absent", "host=h application_name=x statement_timeout=5s",
	} {
		if err := pgstore.CheckSyntax(dsn); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// TestCheckSyntaxPassesOverTheMachine: what another machine, or this one tomorrow, could read is no mistake in the string.
func TestCheckSyntaxPassesOverTheMachine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	services := file("services", "[central]\nhost=h\nport=nonsense\n")
	for _, dsn := range []string{
		"postgres://u@h/d?sslmode=verify-full&sslrootcert=/absent", "host=h sslmode=require sslrootcert=" + file("ca.pem", "no certificate"),
		"host=h sslmode=require sslcert=/absent sslkey=/absent", "host=h passfile=/absent", "service=other servicefile=" + services,
		"service=central servicefile=" + services, "postgres:///?service=central&servicefile=" + services,
	} {
		if err := pgstore.CheckSyntax(dsn); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	for name, value := range map[string]string{"PGPORT": "nonsense", "PGSSLMODE": "nonsense", "PGCONNECT_TIMEOUT": "soon"} {
		t.Setenv(name, value)
		if err := pgstore.CheckSyntax("host=h"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if pgstore.CheckDSN("host=h") == nil {
			t.Errorf("%s was not looked at at all", name)
		}
		t.Setenv(name, "")
	}
}
