package cli

import (
	"io"

	"postern/proxy/cli/guide"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Which shell: bash, zsh or fish."`
}

// Help is shown under the command's usage.
func (completionCmd) Help() string {
	return `The completion knows commands, flags and their values; it asks no running Postern.

Example:

    postern completion bash > /etc/bash_completion.d/postern
    source <(postern completion bash)
    postern completion zsh > "${fpath[1]}/_postern"
    postern completion fish > ~/.config/fish/completions/postern.fish`
}

// Run prints the completion.
func (c *completionCmd) Run(s *session) error {
	root, err := s.described()
	if err != nil {
		return err
	}
	write := map[string]func(guide.Command) string{"bash": guide.Bash, "zsh": guide.Zsh, "fish": guide.Fish}[c.Shell]
	_, err = io.WriteString(s.out, write(root))
	return err
}

type manCmd struct{}

// Help is shown under the command's usage.
func (manCmd) Help() string {
	return `Example:

    postern man > postern.1
    postern man | man -l -`
}

// Run prints the man page.
func (*manCmd) Run(s *session) error {
	root, err := s.described()
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.out, guide.Man(root, Version, manSections))
	return err
}

// manSections are what the grammar does not say.
var manSections = []guide.Section{
	{Title: "EXIT STATUS", Items: [][2]string{
		{"0", "Done."}, {"1", "Failed; standard error says why and what to do."}, {"2", "Wrong usage, or a configuration that is not valid."},
	}},
	{Title: "SIGNALS", Items: [][2]string{
		{"SIGTERM, SIGINT", "Stop: running attempts end, their results are recorded, nothing accepted is lost."},
		{"SIGHUP", "Read the configuration again. One that is not valid leaves the running one in force."},
	}},
	{Title: "ENVIRONMENT", Items: [][2]string{
		{"POSTERN_CONFIG, POSTERN_DATA, POSTERN_LISTEN, POSTERN_ADMIN_LISTEN", "As the flags of run."},
		{"POSTERN_SYNC_DSN", "The central Postgres (sync.dsn)."},
		{"POSTERN_ADMIN, POSTERN_INGEST", "Where commands find a running Postern."},
		{"POSTERN_ADMIN_TOKEN_FILE, POSTERN_INGEST_TOKEN_FILE", "Files with the tokens that it asks for."},
		{"NO_COLOR", "Set and not empty: no colour."},
	}},
	{Title: "FILES", Items: [][2]string{
		{"./postern.yaml", "The configuration, where none is named and this file is there. postern config init writes one."},
		{"./postern-data", "The spool, unless spool.dir or --data names another directory. It belongs to one running Postern."},
	}},
}
