// Command bench measures a built Postern beside references, in one run on one machine, and prints the numbers and their
// ratios.
//
// What it promises: every server that is measured, Postern or reference, is a process of its own, and the same load
// generator drives each of them, so that the cost of the client is the same for all. Reference and subject take turns,
// and the ratio is taken within each turn, since a shared machine is never equally fast twice. Every answer is checked:
// a run in which one request was not answered as expected, or one event did not arrive, fails instead of printing a
// number. Latencies at a fixed rate count from the time at which a request was meant to leave.
//
// What it leaves out: networks (all of it is loopback), TLS, slow receivers, and disks other than the one that the
// temporary directory is on.
//
// With --growth it measures the same at other sizes, and with --plot it draws that as a picture (package chart). The
// same program plays the other roles (load generator, receiver, references) by starting itself anew; see roles.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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
	quick    bool
	growth   bool
	json     string
	plot     string
	only     []string // nil: all that need not be asked for
	rounds   int
	duration time.Duration
	postern  string
	profiles string
}

// How often reference and subject take turns unless it is said.
const fullRounds, quickRounds = 5, 1

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.quick, "quick", false, "smaller sizes, shorter times and one round: a look of about two minutes, not a measurement")
	flags.BoolVar(&o.growth, "growth", false, "measure how throughput changes with events waiting, endpoints, body size and connections, instead of the table")
	flags.StringVar(&o.json, "json", "", "write the results to this `FILE` too, every round included")
	flags.StringVar(&o.plot, "plot", "", "draw what --growth has measured, or has written to --json before, into this SVG `FILE`")
	flags.StringVar(&only, "only", "", "only these `GROUPS`, with commas between them: "+strings.Join(experimentNames(), " ")+
		" (views takes about six minutes and runs only when it is named)")
	flags.IntVar(&o.rounds, "rounds", 0, fmt.Sprintf("how often reference and subject take turns (default %d, with --quick %d)", fullRounds, quickRounds))
	flags.DurationVar(&o.duration, "duration", 0, "how long each timed load takes (default "+full.load.String()+", at a fixed rate "+full.open.String()+")")
	flags.StringVar(&o.postern, "postern", "", "measure this `BINARY` instead of building one")
	flags.StringVar(&o.profiles, "profiles", "", "write CPU and allocation profiles of Postern under each load into this `DIR`; what is measured suffers a little")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if o.rounds == 0 {
		o.rounds = fullRounds
		if o.quick {
			o.rounds = quickRounds
		}
	}
	return o, o.check(flags.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not understood; see --help", rest[0])
	case o.rounds < 1:
		return fmt.Errorf("--rounds %d: at least one is needed", o.rounds)
	case o.duration < 0:
		return fmt.Errorf("--duration %v: it cannot be negative", o.duration)
	case o.growth && o.only != nil:
		return errors.New("--growth measures its own groups; leave --only out")
	case o.plot != "" && !o.growth && o.json == "":
		return errors.New("--plot needs --growth, or --json FILE with what an earlier --growth has written")
	}
	return checkNames(o.only)
}

// run does what the command line asks for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err == nil {
		err = errors.Join(mayWrite(o.json), mayWrite(o.plot))
	}
	if err == nil && o.profiles != "" {
		err = os.MkdirAll(o.profiles, 0o755)
	}
	switch {
	case err != nil:
		return err
	case o.growth:
		return runGrowth(ctx, o, stderr)
	case o.plot != "":
		return redraw(o.json, o.plot)
	}
	return runTable(ctx, o, stdout, stderr)
}

// mayWrite finds out whether a file can be written, before a quarter of an hour of measuring: it makes its folder, and
// opens it without changing it.
func mayWrite(file string) error {
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// runTable makes the laboratory, runs the experiments, and clears up, also where ctx ends before they do.
func runTable(ctx context.Context, o options, stdout, stderr io.Writer) error {
	l, err := newLab(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.runAll(ctx); err != nil {
		return err
	}
	err = l.report.writeTable(stdout)
	if o.json != "" {
		err = errors.Join(err, writeJSON(o.json, l.report))
	}
	return err
}
