package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// lab is where the experiments happen: a temporary directory, the binary under test, and the report.
type lab struct {
	options
	sizes    sizes
	dir      string
	binary   string
	progress io.Writer
	report   reportData
	taken    int // profiles
}

func newLab(ctx context.Context, o options, progress io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "postern-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{options: o, sizes: o.sizes(), dir: dir, binary: o.postern, progress: progress}
	l.report = reportData{
		Date: time.Now().UTC().Format(time.DateOnly), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Rounds: o.rounds, Quick: o.quick,
	}
	if l.binary == "" {
		if err := l.build(ctx); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// build makes the binary as `make build` does.
func (l *lab) build(ctx context.Context) error {
	l.say("building postern")
	l.binary = filepath.Join(l.dir, "postern")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", l.binary, "postern")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building postern (run this in its source directory): %w\n%s", err, out)
	}
	return nil
}

// close removes everything that was written.
func (l *lab) close() error { return os.RemoveAll(l.dir) }

// runAll runs the experiments that were asked for. One that lacks what it needs (a Postgres) is left out with a note,
// unless it was asked for by name.
func (l *lab) runAll(ctx context.Context) error {
	for _, e := range experiments {
		if !l.wants(e) {
			continue
		}
		l.report.Groups = append(l.report.Groups, group{Name: e.name, About: e.about(l)})
		began := time.Now()
		err := e.run(l, ctx)
		switch missing := (needs{}); {
		case err == nil:
		case ctx.Err() != nil:
			return errInterrupted
		case errors.As(err, &missing) && l.only == nil:
			l.say("%s is left out: %v", e.name, missing.err)
			l.group().LeftOut = missing.Error()
		default:
			return fmt.Errorf("%s: %w", e.name, err)
		}
		l.say("%s took %.0f s", e.name, time.Since(began).Seconds())
	}
	return nil
}

var errInterrupted = errors.New("interrupted; what was written has been removed")

// needs is the error of an experiment that lacks something.
type needs struct {
	what string
	err  error
}

func (n needs) Error() string { return fmt.Sprintf("it needs %s: %v", n.what, n.err) }
func (n needs) Unwrap() error { return n.err }

// group is the part of the report that is being written.
func (l *lab) group() *group { return &l.report.Groups[len(l.report.Groups)-1] }

func (l *lab) add(rows ...row) {
	g := l.group()
	g.Rows = append(g.Rows, rows...)
	for _, r := range rows {
		l.say("  %s: %s %s", r.Name, quantity(r.Value, r.Unit), r.comparison())
	}
}

// say tells the person who waits what is going on.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// space makes a fresh directory, and a function that removes it: a million events are not kept longer than needed.
func (l *lab) space() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(l.dir, "data-")
	return dir, func() { os.RemoveAll(dir) }, err
}
