// Package demo shows what Postern is for: it posts a few hundred postbacks at receivers that are slow, fail, throttle,
// refuse and come back, and proves at the end that each accepted event was seen.
//
// It promises a real Postern with a real spool in a temporary folder, nothing but loopback connections, an end within
// 30 s, and an error unless the receivers saw every accepted event ID. It leaves out measuring: that is the benchmark's.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// limit ends a demo that does not come to its end by itself. The whole has 30 s, stopping included.
const limit = 27 * time.Second

// Instance is what the demo wants started.
type Instance struct {
	ConfigFile string
	// Log takes what the running Postern writes.
	Log io.Writer
	// Ready is to be called with the base URLs of ingest and admin once they answer.
	Ready func(ingest, admin string)
}

// Options say where to show the demo and how to start a Postern.
type Options struct {
	Out *term.Writer
	// Quick is the same in a few seconds, with fewer events.
	Quick bool
	// Result takes the summary instead of Out, where it is not nil.
	Result func(Summary) error
	// Start runs a Postern until ctx ends.
	Start func(ctx context.Context, i Instance) error
}

// Run shows the demo. It is nil only if the receivers saw every accepted event.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "postern-demo-")
	if err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	script := full()
	if o.Quick {
		script = quick()
	}
	err = o.inFolder(ctx, dir, script)
	if errors.Is(ctx.Err(), context.Canceled) {
		err = errors.New("the demo was interrupted")
	} else if err != nil {
		return fmt.Errorf("%w\nThe folder with the spool and the log is kept: %s", err, dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// inFolder starts the receivers, then the Postern that needs their address, and stops both in reverse.
func (o Options) inFolder(ctx context.Context, dir string, script script) error {
	receivers, err := startReceivers(script)
	if err != nil {
		return err
	}
	defer receivers.close()
	config := filepath.Join(dir, "postern.yaml")
	if err := os.WriteFile(config, []byte(script.config(dir, receivers.base)), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "postern.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	running, err := start(ctx, o.Start, Instance{ConfigFile: config, Log: log})
	if err != nil {
		return err
	}
	show := &show{out: o.Out, script: script, receivers: receivers, running: running, started: time.Now(), result: o.Result}
	err = show.play(ctx)
	return errors.Join(err, running.stop())
}

// running is a started Postern with its two clients.
type running struct {
	ingest *client.Ingest
	admin  *client.Admin
	cancel context.CancelFunc
	ended  chan error
}

// start runs a Postern in the background and waits until it answers.
func start(ctx context.Context, run func(context.Context, Instance) error, i Instance) (*running, error) {
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{cancel: cancel, ended: make(chan error, 1)}
	addresses := make(chan [2]string, 1)
	i.Ready = func(ingest, admin string) { addresses <- [2]string{ingest, admin} }
	go func() { r.ended <- run(runCtx, i) }()
	select {
	case err := <-r.ended:
		cancel()
		return nil, fmt.Errorf("postern did not start: %w", errors.Join(err, errors.New("see its log")))
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), r.stop())
	case a := <-addresses:
		ingest, err := client.NewIngest(client.Config{Address: a[0], UserAgent: "Postern-Demo"})
		if err != nil {
			return nil, errors.Join(err, r.stop())
		}
		admin, err := client.NewAdmin(client.Config{Address: a[1], UserAgent: "Postern-Demo"})
		if err != nil {
			return nil, errors.Join(err, r.stop())
		}
		r.ingest, r.admin = ingest, admin
		return r, nil
	}
}

// stop ends the Postern in order and waits for it.
func (r *running) stop() error {
	r.cancel()
	err := <-r.ended
	if r.ingest != nil {
		r.ingest.Close()
	}
	if r.admin != nil {
		r.admin.Close()
	}
	if err != nil {
		return fmt.Errorf("postern did not stop well: %w", err)
	}
	return nil
}
