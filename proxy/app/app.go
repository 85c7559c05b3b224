// Package app builds a Postern out of its parts, starts them in order, and stops them in reverse.
//
// It is the only package that knows all parts. It promises the order of starting and stopping (each step has its reason
// beside it), that a reload either takes effect whole or not at all, and that every attempt is told once, in one log
// line and one set of counters. It leaves out what each part does, and everything about the command line.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"postern/configs"
	"postern/proxy/redact"
	"postern/sync/pgstore"
)

// Options say what to run.
type Options struct {
	Config  configs.Options
	Version string
	// Stderr takes the log. Stdout stays free for the commands that print.
	Stderr io.Writer
	// Ready is called once, when both listeners answer.
	Ready func(Addrs)
}

// Addrs are where the listeners really are.
type Addrs struct {
	Ingest, Admin, Probes string // host:port, or unix:PATH
}

// ErrConfig marks errors of the configuration: the exit code is 2, not 1.
var ErrConfig = errors.New("configuration")

// closeLimit bounds how long the spool may take to write its last results: with a disk that fails, they are lost with
// the process, and their events are sent again.
const closeLimit = 10 * time.Second

// Run runs a Postern until ctx ends, then stops it in order. It returns nil after a clean stop.
func Run(ctx context.Context, o Options) error {
	// First of all: a SIGHUP that comes while a large spool opens must not end the process.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	o.Config.CheckDSN = pgstore.CheckSyntax
	cfg, err := configs.Load(o.Config)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	silenceLibraries()
	defer keepHeadroom()()
	lines := newLogWriter(o.Stderr)
	defer lines.close()
	level := new(slog.LevelVar)
	a := &app{options: o, level: level, lines: lines, log: newLogger(cfg, lines, level)}
	if err := a.build(cfg); err != nil {
		return errors.Join(err, a.abandon())
	}
	giveBackRest(len(cfg.Endpoints))
	return a.run(ctx, hup)
}

// silenceLibraries keeps the standard logger quiet. net/http's transport prints what a receiver sends unasked, which may
// be anything that it was sent, and no library says there what Postern does not say itself. A log whose reader has died
// must not end the process either.
func silenceLibraries() {
	log.SetOutput(io.Discard)
	signal.Ignore(syscall.SIGPIPE)
}

func newLogger(cfg *configs.Config, w io.Writer, level *slog.LevelVar) *slog.Logger {
	level.Set(cfg.Log.Level)
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redact.Attr}
	if cfg.Log.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
