package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"postern/configs"
	"postern/proxy/fleet"
	"postern/proxy/fleet/web"
	"postern/proxy/guard"
	"postern/proxy/redact"
	"postern/proxy/server"
)

type fleetServeCmd struct {
	storeFlags
	thresholdFlags
	Since     ago    `default:"24h" placeholder:"DURATION" help:"Percentiles of alerts are over this long (${default}; 90m, 7d, …)."`
	Listen    string `default:"127.0.0.1:8091" placeholder:"ADDR" help:"HOST:PORT or unix:PATH to serve the page on (${default})."`
	TokenFile string `placeholder:"FILE" help:"File with the token that the page and its API ask for; one per line. Needed where --listen is not loopback."`
}

// Help is shown under the command's usage.
func (fleetServeCmd) Help() string {
	return "The page reads Postgres and nothing else, and changes nothing. SIGTERM or SIGINT stops it.\n\nExample:\n\n    postern fleet serve\n    postern fleet serve --listen :8091 --token-file /run/secrets/fleet-page"
}

// Validate is called by kong.
func (c *fleetServeCmd) Validate() error { return c.thresholdFlags.Validate() }

// Run serves until a signal comes.
func (c *fleetServeCmd) Run(s *session) error {
	cfg, err := c.configuration(s)
	if err != nil {
		return err
	}
	place, tokens, err := c.door()
	if err != nil {
		return err
	}
	store, err := c.open(c.where(cfg))
	if err != nil {
		return err
	}
	defer store.Close()
	network, address := place.Split()
	ln, err := server.Listen(network, address, server.DefaultSocketMode)
	if err != nil {
		return fmt.Errorf("listening on %s: %w. Give --listen another address", c.Listen, err)
	}
	at := ln.Addr().String()
	logger := slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{ReplaceAttr: redact.Attr}))
	handler := web.New(web.Config{
		Guard:   guard.New(guard.Config{Listen: []string{c.Listen, at}, AnyHost: network == "unix", Tokens: tokens}),
		Logger:  logger,
		Answers: web.Answers(fleet.New(store), c.thresholds("", c.Since, cfg.Config)),
	})
	if network == "tcp" {
		at = "http://" + at + "/"
	}
	fmt.Fprintf(s.out, "The fleet's page is at %s\n", at)
	return serve(ln, server.New(server.Config{Name: "fleet", Handler: handler, Logger: logger, Limits: server.Admin}), handler.Close)
}

// door says where to listen, and who may come in.
func (c *fleetServeCmd) door() (place configs.Listener, tokens func() [][]byte, err error) {
	place = configs.Listener{Address: c.Listen, TokenFile: c.TokenFile}
	if network, address := place.Split(); network == "tcp" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return place, nil, usage("--listen: %q is not HOST:PORT or unix:PATH", c.Listen)
		}
	}
	if c.TokenFile == "" {
		if !place.Loopback() {
			return place, nil, usage("%s can be reached from other machines and needs a token: give --token-file a file that holds one, or listen on 127.0.0.1", c.Listen)
		}
		return place, nil, nil
	}
	text, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return place, nil, usage("the token file cannot be read: %v", redact.Error(err))
	}
	found := bytes.Fields(text)
	if len(found) == 0 {
		return place, nil, usage("the token file %s is empty: write a token into it, a word on a line of its own", c.TokenFile)
	}
	return place, guard.TokenFile(c.TokenFile, found...), nil
}

// goodbye is how long requests that are being answered have when it stops.
const goodbye = 2 * time.Second

// serve answers until a signal comes. ending is called first then, so that nobody is waited for who waits for Postgres.
func serve(ln net.Listener, srv *server.Server, ending func()) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		ending()
		return fmt.Errorf("the page can be served no longer: %w", err)
	case <-ctx.Done():
	}
	ending()
	limit, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if srv.Shutdown(limit) != nil {
		srv.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
