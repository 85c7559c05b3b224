package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

type runCmd struct {
	configFlags
	Hello bool `help:"Start a small receiver on loopback, deliver one first postback to it, and show what arrived. Implies --dev."`
}

// Help is shown under the command's usage.
func (runCmd) Help() string {
	return `SIGTERM or SIGINT stops it in order: running attempts finish first; a second one, a second or more after it, ends it at once. SIGHUP reads the configuration again.

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

// echo is how long after the first signal others are taken for the same one: `timeout` signals its child and then the
// child's whole group, and some supervisors send SIGTERM and SIGINT at once. A person who means it again takes longer.
const echo = time.Second

// untilSignal ends the context at the first SIGTERM or SIGINT. A repetition at once is passed over; after that both have
// their default effect again, so that a second one ends the process.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	over := make(chan struct{})
	arrived := make(chan os.Signal, 16)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	go func() {
		ignoreEcho(arrived, over, cancel)
		signal.Stop(arrived)
		select {
		case later := <-arrived: // it came before Stop: give it the effect that it would have now
			if number, ok := later.(syscall.Signal); ok && ctx.Err() != nil && !isClosed(over) {
				_ = syscall.Kill(syscall.Getpid(), number)
			}
		default:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		close(over)
		cancel()
	})
}

// ignoreEcho calls first at the first signal, and returns when others are no echo of it any more, or when all is over.
func ignoreEcho(arrived <-chan os.Signal, over <-chan struct{}, first func()) {
	select {
	case <-over:
		return
	case <-arrived:
	}
	first()
	end := time.NewTimer(echo)
	defer end.Stop()
	for {
		select {
		case <-end.C:
			return
		case <-over:
			return
		case <-arrived:
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
