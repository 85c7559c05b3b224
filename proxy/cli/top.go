package cli

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

type topCmd struct {
	adminFlags
	JSON     bool          `name:"json" help:"Print one glance as one JSON object: the API's status, activity, endpoints and latency."`
	Interval time.Duration `default:"1s" placeholder:"DURATION" help:"Look this often (${default})."`
}

// Help is shown under the command's usage.
func (topCmd) Help() string {
	return "Keys: q quits, p holds the picture and lets it go on. Where standard output is no terminal, one picture is printed; --json prints one glance as JSON, anywhere.\n\nExample:\n\n    postern top\n    postern top --interval 5s\n    postern top --json | jq '.endpoints[] | select(.breaker.state != \"closed\") | .name'"
}

// Validate is called by kong.
func (c *topCmd) Validate() error {
	if c.Interval < 100*time.Millisecond || c.Interval > time.Hour {
		return fmt.Errorf("--interval must be from 100ms to 1h")
	}
	return nil
}

// trendsEvery is how often the trends are asked for: they are judged by the half hour.
const trendsEvery = 30 * time.Second

// Run draws until q, a signal, or at once where nobody watches.
func (c *topCmd) Run(s *session) error {
	admin, err := c.open(s)
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, stop := untilSignal(context.Background())
	defer stop()
	// These two would end it without giving the terminal back.
	ctx, unhook := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT)
	defer unhook()
	if c.JSON {
		return s.printGlance(ctx, admin)
	}
	g := &glance{now: s.now}
	// What cannot be reached at all is told as any other command does, before the terminal is taken.
	if err := g.look(ctx, admin); err != nil {
		return err
	}
	if !s.out.TTY {
		return g.write(s.out)
	}
	screen, err := term.OpenScreen(s.out, s.Stdin)
	if err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	defer screen.Close() // also where something panics: the terminal is the person's
	return c.watch(ctx, admin, screen, g)
}

// watch looks and draws in turn. A look that fails is told above the last picture.
func (c *topCmd) watch(ctx context.Context, admin *client.Admin, screen *term.Screen, g *glance) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	keys, held := screen.Keys(), false
	for {
		footer := "q quit   p hold"
		if held {
			footer = "held; p go on   q quit"
		}
		if err := screen.Draw(g.write, footer); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key, open := <-keys:
			switch {
			case !open:
				keys = nil // the keyboard has gone; a signal still ends it
			case key == 'q' || key == 'Q' || key == ctrlC || key == ctrlD:
				return nil
			case key == 'p' || key == ' ':
				held = !held
			}
		case <-tick.C:
			if !held {
				g.problem = g.look(ctx, admin)
			}
		}
	}
}

// The keys that end a program, which are no signals while the terminal hands on every key.
const (
	ctrlC = 0x03
	ctrlD = 0x04
)

// glance is what top shows.
type glance struct {
	now       func() time.Time
	status    client.Status
	activity  client.Activity
	endpoints []client.Endpoint
	trends    map[string]client.Trend
	trendsAt  time.Time
	problem   error // of the last look
}

// look asks for everything.
func (g *glance) look(ctx context.Context, admin *client.Admin) error {
	status, err := admin.Status(ctx)
	if err != nil {
		return err
	}
	activity, err := admin.Activity(ctx)
	if err != nil {
		return err
	}
	endpoints, err := admin.Endpoints(ctx)
	if err != nil {
		return err
	}
	if g.trends == nil || g.now().Sub(g.trendsAt) >= trendsEvery {
		latency, err := admin.Latency(ctx)
		if err != nil {
			return err
		}
		g.trends, g.trendsAt = make(map[string]client.Trend, len(latency.Value.Endpoints)), g.now()
		for _, l := range latency.Value.Endpoints {
			g.trends[l.Name] = l.Trend
		}
	}
	g.status, g.activity, g.endpoints = status.Value, activity.Value, endpoints.Value.Endpoints
	return nil
}
