package cli

import (
	"fmt"
	"os"

	"postern/configs"
	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// whereabouts is what the flags say about one face of a running Postern.
type whereabouts struct{ address, tokenFile, config string }

// connect prepares a client of one face. A configuration that cannot be read is no reason to give up: the running
// Postern may be well although its next start would not be, and a probe that fails then would bring that start about.
func connect[T any](s *session, w whereabouts, face func(ingest, admin configs.Listener) configs.Listener, dial func(client.Config) (T, error)) (T, error) {
	cfg := client.Config{Address: w.address, TokenFile: w.tokenFile, UserAgent: s.agent()}
	if cfg.Address == "" {
		running := face(s.listeners(w.config))
		cfg.Address = running.Address
		if cfg.TokenFile == "" {
			cfg.TokenFile = s.readableToken(running.TokenFile)
		}
	}
	s.atDefault = cfg.Address == ""
	c, err := dial(cfg)
	if err != nil {
		err = &exitError{code: exitUsage, err: err}
	}
	return c, err
}

// listeners tells where the Postern of the named configuration listens; without one, and without the variables that
// `run` reads too, the addresses are empty.
func (s *session) listeners(file string) (ingest, admin configs.Listener) {
	listen, _ := s.Env("POSTERN_LISTEN")
	adminListen, _ := s.Env("POSTERN_ADMIN_LISTEN")
	if file == "" {
		return configs.Listener{Address: listen}, configs.Listener{Address: adminListen}
	}
	ingest, admin, err := configs.Listeners(configs.Options{Path: file, Listen: listen, AdminListen: adminListen, Getenv: s.Env})
	if err != nil {
		s.hint("%v\nUnless an address is given, Postern is expected where it listens by default.", err)
	}
	return ingest, admin
}

// readableToken passes over a token file that only the configuration names and that cannot be read: whether a token is
// asked for is the listener's to say.
func (s *session) readableToken(file string) string {
	if file == "" {
		return ""
	}
	if _, err := os.ReadFile(file); err != nil {
		s.hint("the token file of the configuration cannot be read, and no token is sent: %v", err)
		return ""
	}
	return file
}

// hint goes to standard error and fails nothing.
func (s *session) hint(format string, args ...any) {
	fmt.Fprintf(s.err, "postern: %s\n", term.CleanText(fmt.Sprintf(format, args...)))
}

// forgotten is what to add where nobody answers at the default address, and a configuration lies here that was not named.
func (s *session) forgotten() string {
	if _, err := os.Stat(localConfig); !s.atDefault || err != nil {
		return ""
	}
	return "\nThere is a " + localConfig + " here: if Postern runs with it, name it with --config " + localConfig + " (POSTERN_CONFIG)."
}

// localConfig is the file that `run` reads unless it is told of another one.
const localConfig = "postern.yaml"
