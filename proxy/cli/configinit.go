package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"postern/configs"
)

type configInitCmd struct {
	Full bool   `help:"Write every setting with its default."`
	File string `arg:"" optional:"" default:"postern.yaml" help:"Where to write it; - for standard output."`
}

// Help is shown under the command's usage.
func (configInitCmd) Help() string {
	return "The file loads as it stands. One that is there already is never touched.\n\nExample:\n\n    postern config init\n    postern config init --full -"
}

// Run writes the file, readable by its owner alone: secrets are likely to be put in there.
func (c *configInitCmd) Run(s *session) error {
	text := configs.Starter
	if c.Full {
		text = configs.Full
	}
	if c.File == "-" {
		_, err := s.out.Write(text)
		return err
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and stays as it is: name another file, or look at what a new one would be with `postern config init -`", c.File)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s may be incomplete, remove it: %w", c.File, err)
	}
	_, err = fmt.Fprintf(s.out, "%s is written; check it after changes with `postern config check --config %s`\n", c.File, c.File)
	return err
}
