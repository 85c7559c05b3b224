package pgstore

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config says which Postgres, and as whom.
type Config struct {
	// DSN is a URL or a list of keyword=value pairs, as psql takes them. It is a secret.
	DSN string
	// Schema holds all tables: a-z, 0-9 and _, at most 40 bytes. Empty: postern.
	Schema string
	// Instance is the ID that keys begin with, a UUID. Readers leave it empty.
	Instance string
	// Version and Labels are shown in the table instances.
	Version string
	Labels  map[string]string
	// Timeout bounds one statement. Zero: 10 s.
	Timeout time.Duration
	// Retention is how long history is kept. Zero: 720 h.
	Retention time.Duration
	// KeepBodies leaves a body that was stored where it is, whatever becomes of its event: the spool gives delivered ones up.
	// Else a body goes with the state that it came with.
	KeepBodies bool
	// Now is this machine's clock; nil means time.Now.
	Now func() time.Time
	// Logger is told of the few things that an operator must know. Nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultSchema    = "postern"
	defaultTimeout   = 10 * time.Second
	defaultRetention = 720 * time.Hour
	// connectTimeout bounds the way to a connection, where the DSN does not say otherwise.
	connectTimeout = 5 * time.Second
)

var (
	schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)
	uuidText   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Retention <= 0 {
		c.Retention = defaultRetention
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.DSN == "":
		return errors.New("sync.dsn is empty: give a Postgres connection string, such as postgres://user@host/database")
	case !schemaName.MatchString(c.Schema):
		return fmt.Errorf("sync.schema is %q: use a-z, 0-9 and _, at most 40", c.Schema)
	case c.Instance != "" && !uuidText.MatchString(c.Instance):
		return errors.New("the instance ID is not a UUID")
	}
	return nil
}

// quoted is the schema as an SQL identifier.
func (c Config) quoted() string { return pgx.Identifier{c.Schema}.Sanitize() }
