// Package cli is what a person types: every subcommand, its help, its exit code.
//
// It promises three exit codes (0 done, 1 failed, 2 wrong usage or configuration), errors on standard error that say
// what to do next, and on standard output nothing but the answer, so that it can be piped; --json prints the API's own
// JSON. It never ends the process itself. It leaves out what the commands do: that is app's, client's and spool's.
package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"postern/proxy/cli/term"
	"postern/proxy/redact"
)

// Process is what the operating system gave the process.
type Process struct {
	// Args are the arguments without the program's name.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Env looks up an environment variable, as os.LookupEnv does.
	Env func(string) (string, bool)

	now func() time.Time // nil: time.Now
}

// Version is this build's. The linker sets it: -ldflags "-X postern/proxy/cli.Version=1.2.3".
var Version = "dev"

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// session is what every command works with.
type session struct {
	Process
	out, err *term.Writer
	// atDefault tells that nobody said where Postern is.
	atDefault bool
}

// Main runs one command and returns the process's exit code.
func Main(p Process) int {
	if p.now == nil {
		p.now = time.Now
	}
	s := &session{Process: p, out: term.New(p.Stdout, p.Env), err: term.New(p.Stderr, p.Env)}
	parser, err := newParser(s, s.out.Writer, s.err.Writer)
	if err != nil {
		fmt.Fprintf(s.err, "postern: the command line's own description is wrong: %v\n", err)
		return exitFailed
	}
	parsed, err := parser.Parse(reorder(parser.Model, p.Args))
	if err == nil {
		err = parsed.Run(s)
	}
	return s.finish(err)
}

// finish says what went wrong, if anything did, and turns it into the exit code.
func (s *session) finish(err error) int {
	if err == nil || errors.Is(err, errHelpShown) {
		return exitDone
	}
	code := exitCode(err)
	if quiet, ok := errors.AsType[*exitError](err); ok && quiet.err == nil {
		return code
	}
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		text, command := explainParse(parse)
		fmt.Fprintf(s.err, "postern: %s\nRun `%s --help` for its usage.\n", redact.Text(text), command)
		return code
	}
	fmt.Fprintf(s.err, "postern: %s\n", term.CleanText(redact.Text(s.explain(err))))
	return code
}
