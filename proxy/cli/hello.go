package cli

import "context"

func (c *runCmd) withHello(ctx context.Context, s *session) error {
	return runApp(ctx, c.runOptions(s))
}
