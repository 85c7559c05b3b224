package cli

import (
	"errors"
	"io"

	"github.com/alecthomas/kong"
)

// configFlags belong to the commands that read the configuration themselves.
type configFlags struct {
	Config      string `short:"c" placeholder:"FILE" fromenv:"POSTERN_CONFIG" group:"config" help:"Configuration file; without one ./postern.yaml if it is there, else the defaults."`
	Data        string `placeholder:"DIR" fromenv:"POSTERN_DATA" group:"config" help:"Directory of the spool (spool.dir)."`
	Listen      string `placeholder:"ADDR" fromenv:"POSTERN_LISTEN" group:"config" help:"Where applications post to (listen)."`
	AdminListen string `placeholder:"ADDR" fromenv:"POSTERN_ADMIN_LISTEN" group:"config" help:"Where the admin API answers (admin.listen)."`
	SyncDSN     string `name:"sync-dsn" placeholder:"DSN" group:"config" help:"Postgres to report to (sync.dsn)."`
	Pprof       bool   `group:"config" help:"Give profiles of the running program at /debug/pprof/ of the admin API (admin.pprof)."`
	Dev         bool   `group:"config" help:"For a developer's machine: private targets allowed, short delays, readable logs."`
}

// grammar is the whole command line.
type grammar struct {
	Help helpFlag `short:"h" help:"Show what a command does, with an example."`

	Run         runCmd         `cmd:"" default:"withargs" help:"Run Postern (what happens when no command is given)."`
	Send        sendCmd        `cmd:"" help:"Hand one postback to a running Postern."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask a running Postern whether it is ready; the exit code is the answer."`
	Status      statusCmd      `cmd:"" help:"Show what a running Postern is doing."`
	Top         topCmd         `cmd:"" help:"Watch a running Postern: the pipeline and its endpoints, the most troubled first."`
	Events      eventsCmd      `cmd:"" help:"List, show, retry or delete events."`
	Endpoints   endpointsCmd   `cmd:"" help:"List, show, pause, resume or reset endpoints."`
	DeadLetters deadLettersCmd `cmd:"" help:"List, analyse, replay or purge what was given up."`
	Fleet       fleetCmd       `cmd:"" help:"Ask the central Postgres about all instances together."`
	Sync        syncCmd        `cmd:"" help:"Make the central Postgres ready, or see to rows that it refused."`
	Spool       spoolCmd       `cmd:"" help:"Check, compact or salvage a spool that no Postern has open, or change its key."`
	Configure   configCmd      `cmd:"" name:"config" help:"Write a first configuration, check one, or show the one in force."`
	Verify      verifyCmd      `cmd:"" help:"Check the signature of a request that was received."`
	Demo        demoCmd        `cmd:"" help:"Watch Postern deliver to receivers that misbehave."`
	Completion  completionCmd  `cmd:"" help:"Print what makes a shell complete these commands."`
	Man         manCmd         `cmd:"" help:"Print the manual page."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

const description = "Postern takes an application's outgoing postbacks and webhooks on localhost, keeps each one on disk before it says yes, and delivers it."

// errHelpShown ends parsing once help was printed; it is no failure.
var errHelpShown = errors.New("help was shown")

// helpFlag prints help without ending the process, which kong's own flag would do.
type helpFlag bool

// IgnoreDefault lets --help select no default command: it is about what was typed.
func (helpFlag) IgnoreDefault() {}

// BeforeReset is called by kong once it knows the command and before it checks anything else.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	return errHelpShown
}

func newParser(s *session, out, err io.Writer) (*kong.Kong, error) {
	return kong.New(&grammar{},
		kong.Name("postern"),
		kong.Description(description),
		kong.Writers(out, err),
		kong.Exit(func(int) {}), // never reached: help has its own flag, and errors are returned
		kong.NoDefaultHelp(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ExplicitGroups([]kong.Group{{Key: "config", Title: "Configuration (each flag overrides the file):"}, {Key: "admin", Title: "Where Postern is:"}, {Key: "store", Title: "Where the fleet's Postgres is:"}}),
		kong.ValueFormatter(helpText),
		kong.Resolvers(environment(s.Env)),
		kong.PostBuild(knowHelpFlag),
	)
}

// environment gives flags their values from the process's environment as it was handed to Main. kong's own `env` tag
// would read the real one behind the caller's back.
func environment(env func(string) (string, bool)) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		name := flag.Tag.Get("fromenv")
		if name == "" {
			return nil, nil
		}
		if value, ok := env(name); ok && value != "" {
			return value, nil
		}
		return nil, nil
	})
}

// helpText adds the environment variable to a flag's help.
func helpText(value *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(value)
	if value.Tag == nil {
		return text
	}
	if name := value.Tag.Get("fromenv"); name != "" {
		text += " Also $" + name + "."
	}
	return text
}

// knowHelpFlag makes kong's help end with the line that names --help.
func knowHelpFlag(k *kong.Kong) error {
	for _, flag := range k.Model.Flags {
		if flag.Name == "help" {
			k.Model.HelpFlag = flag
		}
	}
	return nil
}
