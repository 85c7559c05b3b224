package cli

import (
	"fmt"

	"postern/configs"
	"postern/proxy/app"
	"postern/proxy/cli/term"
	"postern/sync/pgstore"
)

type configCmd struct {
	Init  configInitCmd  `cmd:"" help:"Write a commented configuration to begin with."`
	Check configCheckCmd `cmd:"" help:"Check the configuration and name every mistake with its line."`
	Show  configShowCmd  `cmd:"" help:"Print the configuration in force, secrets hidden."`
}

// Help is shown under the command's usage.
func (configCmd) Help() string {
	return "Example:\n\n    postern config init\n    postern config check --config postern.yaml\n    postern config show"
}

type configCheckCmd struct{ configFlags }

// Help is shown under the command's usage.
func (configCheckCmd) Help() string {
	return "Exit code 0: it can be run as it stands. Exit code 2: it cannot, and every mistake is named.\n\nExample:\n\n    postern config check --config postern.yaml"
}

// Run loads the configuration as `run` would, and does nothing with it.
func (c *configCheckCmd) Run(s *session) error {
	cfg, err := s.loadConfig(c.options(s))
	if err != nil {
		return err
	}
	where := cfg.File
	if where == "" {
		where = "the defaults (no configuration file)"
	}
	for _, warning := range app.Warnings(cfg) {
		fmt.Fprintln(s.err, "warning: "+warning)
	}
	_, err = fmt.Fprintf(s.out, "%s: valid, %s\n", where, term.Count(int64(len(cfg.Endpoints)), "endpoint"))
	return err
}

type configShowCmd struct{ configFlags }

// Help is shown under the command's usage.
func (configShowCmd) Help() string {
	return "The file, the flags and the defaults joined, as YAML that can be loaded again. Secrets are ***, queries are hidden.\n\nExample:\n\n    postern config show --config postern.yaml --dev"
}

// Run prints what Load made of the file, the flags and the defaults.
func (c *configShowCmd) Run(s *session) error {
	cfg, err := s.loadConfig(c.options(s))
	if err != nil {
		return err
	}
	_, err = s.out.Write(configs.Show(cfg))
	return err
}

// options is what the flags say about the configuration.
func (f configFlags) options(s *session) configs.Options {
	return configs.Options{
		Path: f.Config, Data: f.Data, Listen: f.Listen, AdminListen: f.AdminListen, SyncDSN: f.SyncDSN, Dev: f.Dev, Pprof: f.Pprof, Getenv: s.Env,
		CheckDSN: pgstore.CheckSyntax,
	}
}

// loadConfig loads the configuration; every mistake in it is wrong usage.
func (s *session) loadConfig(o configs.Options) (*configs.Config, error) {
	cfg, err := configs.Load(o)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("the configuration is not valid:\n%w", err)}
	}
	return cfg, nil
}
