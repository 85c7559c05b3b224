package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

type runCmd struct {
	configFlags
	Hello bool `help:"Start a small receiver on loopback, deliver one first postback to it, and show what arrived. Implies --dev."`
}

// Help is shown under the command's usage.
func (runCmd) Help() string {
	return `SIGTERM or SIGINT stops it in order: running attempts finish first; a second one ends it at once. SIGHUP reads the configuration again.

Example:

    postern run --config postern.yaml
    postern run --dev --hello`
}

// Run runs a Postern until it is told to stop.
func (c *runCmd) Run(s *session) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	if c.Hello {
		return c.withHello(ctx, s)
	}
	return runApp(ctx, instance{config: c.options(s), log: s.Stderr})
}

// untilSignal ends the context at the first SIGTERM or SIGINT. From then on both have their default effect again, so
// that a second one ends the process at once.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
