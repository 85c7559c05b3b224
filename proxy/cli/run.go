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

// untilSignal ends the context at the first SIGTERM or SIGINT. Both have their default effect again before anybody
// notices, so that a second one ends the process at once.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
			signal.Stop(arrived)
			return
		case <-arrived:
		}
		signal.Stop(arrived)
		select {
		case second := <-arrived: // it came before Stop: give it the effect that it would have now
			if number, ok := second.(syscall.Signal); ok {
				_ = syscall.Kill(syscall.Getpid(), number)
			}
		default:
		}
	}()
	return ctx, cancel
}
