package cli

import (
	"context"

	"postern/configs"
	"postern/proxy/demo"
)

type demoCmd struct {
	JSON  bool `name:"json" help:"Print what it came to as one JSON object; what happens meanwhile goes to standard error."`
	Quick bool `help:"The same in a few seconds, with fewer postbacks."`
}

// Help is shown under the command's usage.
func (demoCmd) Help() string {
	return `It starts receivers on loopback that are slow, fail, throttle, refuse and come back, and a Postern in a temporary folder; posts a few hundred postbacks; and shows what becomes of them. Exit code 0 only if the receivers saw every accepted event.

Example:

    postern demo
    postern demo --quick
    postern demo --json | jq .proven`
}

// Run shows the demo.
func (c *demoCmd) Run(s *session) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	out, result := s.out, (func(demo.Summary) error)(nil)
	if c.JSON {
		out, result = s.err, func(sum demo.Summary) error { return s.encode(sum) }
	}
	return demo.Run(ctx, demo.Options{Out: out, Quick: c.Quick, Result: result, Start: func(ctx context.Context, i demo.Instance) error {
		return runApp(ctx, instance{
			// Nothing of the person's own environment: the demo's file says everything.
			config: configs.Options{Path: i.ConfigFile, Getenv: func(string) (string, bool) { return "", false }},
			log:    i.Log, ready: i.Ready,
		})
	}})
}
