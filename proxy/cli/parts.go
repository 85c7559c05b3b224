package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"postern/configs"
	"postern/proxy/app"
)

// instance is a Postern to be run.
type instance struct {
	config configs.Options
	log    io.Writer
	// ready, where not nil, is called once with the addresses that both listeners really have. It must not block.
	ready func(ingest, admin string)
}

// runApp runs a Postern until ctx ends, and gives the error of a wrong configuration its exit code.
func runApp(ctx context.Context, i instance) error {
	o := app.Options{Config: i.config, Version: Version, Stderr: i.log}
	if i.ready != nil {
		o.Ready = func(a app.Addrs) { i.ready(a.Ingest, a.Admin) }
	}
	err := app.Run(ctx, o)
	if errors.Is(err, app.ErrConfig) {
		return usage("the configuration is not valid:\n%s", strings.TrimPrefix(err.Error(), app.ErrConfig.Error()+": "))
	}
	return err
}
