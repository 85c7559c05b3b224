// Command bench measures a built Postern beside references, in one run on one machine, and prints the numbers and their
// ratios.
//
// What it promises: every server that is measured, Postern or reference, is a process of its own, and the same load
// generator drives each of them, so that the cost of the client is the same for all. Reference and subject take turns
// (A B A B), and the ratio is taken within each turn, since a shared machine is never equally fast twice. Every answer
// is checked: a run in which one request was not answered as expected, or one event did not arrive, fails instead of
// printing a number. Latencies at a fixed rate count from the time at which a request was meant to leave.
//
// What it leaves out: networks (all of it is loopback), TLS, slow receivers, and disks other than the one that the
// temporary directory is on.
//
// The same program plays the other roles (load generator, receiver, references) by starting itself anew; see roles.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == roleArg {
		os.Exit(report(playRole(os.Args[2:], os.Stdin, os.Stdout)))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := report(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	cancel()
	os.Exit(code)
}

// report tells an error and turns it into an exit code.
func report(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 2
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}

// options are what the command line says.
type options struct {
	short   bool
	json    string
	only    *regexp.Regexp
	rounds  int
	postern string
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	var pattern string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.short, "short", false, "a tenth of every size and time, and one round: a look, not a measurement")
	flags.StringVar(&o.json, "json", "", "write the results to this `FILE` too, every round included")
	flags.StringVar(&pattern, "run", "", "only the experiments whose name matches this `REGEXP` ("+strings.Join(experimentNames(), ", ")+")")
	flags.IntVar(&o.rounds, "rounds", 0, "how often reference and subject take turns (default 3, with -short 1)")
	flags.StringVar(&o.postern, "postern", "", "measure this `BINARY` instead of building one")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not understood; see -help", flags.Arg(0))
	}
	if o.rounds < 0 {
		return o, fmt.Errorf("-rounds %d: at least one is needed", o.rounds)
	}
	if o.rounds == 0 {
		o.rounds = 3
		if o.short {
			o.rounds = 1
		}
	}
	var err error
	o.only, err = regexp.Compile(pattern)
	return o, err
}

// run makes the laboratory, runs the experiments, and clears up, also where ctx ends before they do.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.runAll(ctx); err != nil {
		return err
	}
	if o.json != "" {
		if err := l.report.writeJSON(o.json); err != nil {
			return err
		}
	}
	return l.report.writeTable(stdout)
}
