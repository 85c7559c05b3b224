package cli

import (
	"context"
	"io"

	"postern/configs"
)

// runOptions is what a running Postern needs from the command line.
type runOptions struct {
	config         configs.Options
	stdout, stderr io.Writer
	version        string
	// ready is called once with the addresses that both listeners really have.
	ready func(ingest, admin string)
}

// runApp runs a Postern until ctx ends.
var runApp func(ctx context.Context, o runOptions) error
