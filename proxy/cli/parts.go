package cli

import (
	"context"
	"io"

	"postern/configs"
)

// instance is a Postern to be run.
type instance struct {
	config configs.Options
	log    io.Writer
	// ready, where not nil, is called once with the addresses that both listeners really have. It must not block.
	ready func(ingest, admin string)
}

// run runs a Postern until ctx ends.
var runApp func(ctx context.Context, i instance) error
