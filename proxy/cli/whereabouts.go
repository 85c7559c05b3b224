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

// connect prepares a client of one face. A configuration that would not start is no reason to give up: the running
// Postern may be well although its next start would not be, and a probe that fails then would bring that start about. One
// that leaves open where Postern listens is: the Postern at the default address may be another one.
func connect[T any](s *session, w whereabouts, f face, dial func(client.Config) (T, error)) (T, error) {
	var none T
	cfg := client.Config{Address: w.address, TokenFile: w.tokenFile, UserAgent: s.agent()}
	if cfg.Address == "" {
		running, err := s.listener(w.config, f)
		if err != nil {
			return none, err
		}
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

// face is one of the listeners of a running Postern.
type face struct {
	name  string // of its part
	flag  string // that gives its address, with the variable that does
	given string // the variable that `run` reads
	find  func(configs.Options) (l configs.Listener, aside, err error)
}

var (
	ingestFace = face{"ingest", "--ingest ADDRESS (POSTERN_INGEST)", "POSTERN_LISTEN", configs.IngestListener}
	adminFace  = face{"the admin API", "--admin ADDRESS (POSTERN_ADMIN)", "POSTERN_ADMIN_LISTEN", configs.AdminListener}
)

// listener tells where the Postern of the named configuration listens; without one, and without the variable that `run`
// reads too, the address is empty.
func (s *session) listener(file string, f face) (configs.Listener, error) {
	given, _ := s.Env(f.given)
	if file == "" {
		return configs.Listener{Address: given}, nil
	}
	listener, aside, err := f.find(configs.Options{Path: file, Listen: given, AdminListen: given, Getenv: s.Env})
	if aside != nil {
		s.hint("%v", aside)
	}
	if err != nil {
		return listener, usage("where %s listens cannot be told from the configuration, and the default address may be another Postern's:\n%w\nCorrect it, or give the address with %s.", f.name, err, f.flag)
	}
	return listener, nil
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
