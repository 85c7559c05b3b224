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

// sizes say how much of everything one run does.
type sizes struct {
	conns   int           // connections of the closed loop
	body    int           // bytes of a JSON body
	load    time.Duration // one round of a closed loop
	warm    time.Duration // before it, not counted
	deliver int64         // events of one round of accept and deliver
	open    time.Duration // one round at a fixed rate
	syncs   int           // pairs of fdatasync
	backlog int64         // events that wait
	waiting int           // bytes of the body of one of those
	drain   int64         // events delivered out of them in one round
	idle    time.Duration
	day     int64 // attempts of one day in Postgres
}

func sizesFor(short bool) sizes {
	s := sizes{
		conns: 128, body: 500, load: 5 * time.Second, warm: time.Second, deliver: 50_000, open: 10 * time.Second, syncs: 500,
		backlog: 1_000_000, waiting: 1024, drain: 30_000, idle: 10 * time.Second,
		day: 10_000_000,
	}
	if short {
		s.day /= 10
		s.load, s.warm, s.open, s.idle = s.load/10, s.warm/10, s.open/10, s.idle/10
		s.deliver, s.backlog, s.drain, s.syncs = s.deliver/10, s.backlog/10, s.drain/10, s.syncs/10
	}
	return s
}

// experiment measures one thing and adds rows to the report.
type experiment struct {
	name string
	run  func(*lab, context.Context) error
}

var experiments = []experiment{
	{"accept", (*lab).accept},
	{"deliver", (*lab).deliver},
	{"latency", (*lab).latency},
	{"lone", (*lab).lone},
	{"backlog", (*lab).backlog},
	{"idle", (*lab).idle},
	{"postgres-rows", (*lab).postgresRows},
	{"postgres-deliver", (*lab).postgresDeliver},
	{"postgres-views", (*lab).postgresViews},
}

func experimentNames() []string {
	var names []string
	for _, e := range experiments {
		names = append(names, e.name)
	}
	return names
}

// lab is where the experiments happen: a temporary directory, the binary under test, and the report.
type lab struct {
	options
	sizes    sizes
	dir      string
	binary   string
	progress io.Writer
	report   reportData
}

func newLab(ctx context.Context, o options, progress io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "postern-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{options: o, sizes: sizesFor(o.short), dir: dir, binary: o.postern, progress: progress}
	l.report = reportData{
		Date: time.Now().UTC().Format(time.DateOnly), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Rounds: o.rounds, Short: o.short,
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

func (l *lab) runAll(ctx context.Context) error {
	ran := false
	for _, e := range experiments {
		if !l.only.MatchString(e.name) {
			continue
		}
		ran = true
		if err := e.run(l, ctx); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted; what was written has been removed")
			}
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if !ran {
		return fmt.Errorf("-run matches none of the experiments %v", experimentNames())
	}
	return nil
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
