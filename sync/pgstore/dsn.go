package pgstore

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// dsnForms is what a connection string looks like.
const dsnForms = "give postgres://user:password@host:port/database?sslmode=verify-full, or keyword=value pairs"

// CheckDSN tells whether a connection string can be read here and now: the files that it names, and the PG… variables,
// are read too. It connects to nothing, and repeats nothing of the string.
func CheckDSN(dsn string) error {
	_, err := parseDSN(dsn)
	return err
}

// CheckSyntax tells whether a connection string could be read anywhere. What depends on the machine, such as a file that
// is not there or a variable, is no mistake in the string. Its errors repeat nothing of the string.
func CheckSyntax(dsn string) error {
	if key, _, _ := strings.Cut(dsn, "="); !isURL(dsn) && strings.ContainsAny(key, ":/@") {
		return errors.New("it begins like a URL, but not like one of Postgres; " + dsnForms)
	}
	_, err := pgx.ParseConfig(dsn)
	failed, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok {
		return nil
	}
	failed.ConnString = "" // so that its text begins with what is wrong, which has no other form
	_, text, _ := strings.Cut(failed.Error(), ": ")
	for _, m := range mistakes {
		if strings.HasPrefix(text, m.begins) && (m.certain || !elsewhere(dsn)) {
			return fmt.Errorf("%s; %s", m.says, dsnForms)
		}
	}
	return nil
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// mistakes are what the library says of a string that no machine could read. What it may say of the environment or of a
// service file as well is certain only where neither has a say. Whatever is not here counts as the machine's.
var mistakes = []struct {
	begins, says string
	certain      bool
}{
	{"failed to parse as URL", "it cannot be read as a URL (a user or password with / or @ in it needs percent-encoding: %2F, %40)", true},
	{"failed to parse as keyword/value", "it is neither a URL nor keyword=value pairs (a value with a blank in it needs quotes, as in options='a b')", true},
	{"could not match", "it has not as many ports as hosts", false},
	{"invalid port", "the port is not a number from 1 to 65535 (a password with / or @ in it needs percent-encoding: %2F, %40)", false},
	{"invalid connect_timeout", "connect_timeout is not a whole number of seconds", false},
	{"failed to configure TLS (sslmode is invalid)", "sslmode is none of disable, allow, prefer, require, verify-ca and verify-full", false},
	{`failed to configure TLS (both "sslcert" and "sslkey"`, "sslcert and sslkey belong together", false},
	{"invalid sslcertmode", "sslcertmode is none of disable, allow and require", false},
	{"unknown target_session_attrs", "target_session_attrs is none of any, read-write, read-only, primary, standby and prefer-standby", false},
	{"invalid min_protocol_version", "min_protocol_version is none of 3.0, 3.2 and latest", false},
	{"invalid max_protocol_version", "max_protocol_version is none of 3.0, 3.2 and latest", false},
	{"min_protocol_version cannot", "min_protocol_version is more than max_protocol_version", false},
	{"unknown channel_binding", "channel_binding is none of disable, prefer and require", false},
	{"invalid require_auth", "require_auth has a method that there is not", false},
}

var serviceKey = regexp.MustCompile(`(^|[?&\s'])service(file)?\s*=`)

// elsewhere tells whether a value may have come from a service file or from the environment, which is wrong by itself.
func elsewhere(dsn string) bool {
	if serviceKey.MatchString(dsn) || os.Getenv("PGSERVICE") != "" {
		return true
	}
	_, err := pgx.ParseConfig("host=localhost") // over TCP: a socket would pass over what is said of TLS
	return err != nil
}

func parseDSN(dsn string) (*pgx.ConnConfig, error) {
	pc, err := pgx.ParseConfig(dsn)
	if err != nil {
		if err := CheckSyntax(dsn); err != nil {
			return nil, fmt.Errorf("sync.dsn: %w", err)
		}
		// The library's text repeats parts of the connection string.
		return nil, errors.New("sync.dsn cannot be read: " + dsnForms + ", and check the files that it names")
	}
	return pc, nil
}
