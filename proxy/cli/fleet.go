package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"postern/configs"
	"postern/proxy/fleet"
	"postern/sync/pgstore"
)

type fleetCmd struct {
	Status      fleetStatusCmd      `cmd:"" default:"withargs" help:"Show all instances together (what happens when no subcommand is given)."`
	Slow        fleetSlowCmd        `cmd:"" help:"List the endpoints that answer slowly."`
	Percentiles fleetPercentilesCmd `cmd:"" help:"Show p50, p95 and p99 of one endpoint, or of all."`
	DeadLetters fleetLettersCmd     `cmd:"" name:"dead-letters" help:"Say per endpoint why events died, and what to do about it."`
	Alerts      fleetAlertsCmd      `cmd:"" help:"Check what should wake somebody; the exit code is the answer."`
	Serve       fleetServeCmd       `cmd:"" help:"Serve a page about all instances together."`
}

// Help is shown under the command's usage.
func (fleetCmd) Help() string {
	return "These commands ask the Postgres that every instance reports to, and need no running Postern: name it in POSTERN_SYNC_DSN.\n\nExample:\n\n    postern fleet\n    postern fleet percentiles --endpoint partner-a --since 24h"
}

// storeFlags name the central Postgres.
type storeFlags struct {
	DSN    string `name:"dsn" aliases:"sync-dsn" placeholder:"DSN" group:"store" help:"Connection string of the fleet's Postgres. Unless given: sync.dsn of the configuration, else $$POSTERN_SYNC_DSN, which other users of this machine cannot read."`
	Schema string `placeholder:"NAME" group:"store" help:"Schema in it. Unless given: sync.schema of the configuration, else postern."`
	Config string `short:"c" placeholder:"FILE" fromenv:"POSTERN_CONFIG" group:"store" help:"Configuration file; without one ./postern.yaml if it is there and no --dsn is given."`
}

// fleetFlags belong to every command about the fleet.
type fleetFlags struct {
	storeFlags
	Since    ago    `default:"24h" placeholder:"DURATION" help:"Look back this long (${default}; 90m, 7d, …)."`
	Endpoint string `placeholder:"NAME" help:"Only this endpoint: a configured name, or its URL without the query."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// ago is a positive duration, in days too.
type ago time.Duration

// UnmarshalText is called by kong.
func (a *ago) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(min(n, maxDays+1) * 24 * float64(time.Hour))
	}
	if err != nil || d <= 0 || d > maxDays*24*time.Hour {
		return fmt.Errorf("%q is not a time to look back; write 90m, 24h or 7d", text)
	}
	*a = ago(d)
	return nil
}

// maxDays is longer than any retention.
const maxDays = 3660

// String writes it as a person types it.
func (a ago) String() string {
	d := time.Duration(a)
	if day := 24 * time.Hour; d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func (a ago) duration() time.Duration { return time.Duration(a) }

// central is what is known of the configuration, with what of it cannot be read and is not needed to ask Postgres.
type central struct {
	*configs.Config
	other error
}

// configuration is the file's, where one is needed or named, else the defaults. Of the file the section sync alone must be
// right: these commands run where no Postern does, without its secrets.
func (f storeFlags) configuration(s *session) (central, error) {
	if f.DSN != "" && f.Config == "" {
		return central{configs.Defaults(), nil}, nil
	}
	cfg, other, err := configs.Central(configs.Options{Path: f.Config, SyncDSN: f.DSN, CheckDSN: pgstore.CheckSyntax, Getenv: s.Env})
	if err != nil {
		return central{}, &exitError{code: exitUsage, err: fmt.Errorf("which Postgres to ask cannot be read from the configuration:\n%w", err)}
	}
	return central{cfg, other}, nil
}

// where says which Postgres and schema are meant.
func (f storeFlags) where(cfg central) pgstore.Config {
	return pgstore.Config{DSN: cmp.Or(f.DSN, cfg.Sync.DSN), Schema: cmp.Or(f.Schema, cfg.Sync.Schema), Timeout: queryTimeout}
}

// queryTimeout is longer than an instance waits: a person may ask for a year.
const queryTimeout = time.Minute

// open prepares the store; nothing is connected yet. What is wrong now was typed or configured wrong.
func (f storeFlags) open(c pgstore.Config) (*pgstore.Store, error) {
	if c.DSN == "" {
		return nil, usage("no Postgres is named: give --dsn, set POSTERN_SYNC_DSN, or name a configuration that has sync.dsn with --config")
	}
	store, err := pgstore.Open(context.Background(), c)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return store, nil
}

// ask opens the store, lets fn ask, and closes it.
func (f fleetFlags) ask(s *session, fn func(ctx context.Context, fleet *fleet.Fleet, cfg central) error) error {
	cfg, err := f.configuration(s)
	if err != nil {
		return err
	}
	store, err := f.open(f.where(cfg))
	if err != nil {
		return err
	}
	defer store.Close()
	return fn(context.Background(), fleet.New(store), cfg)
}
