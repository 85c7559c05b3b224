package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"postern/sync/pgtest"
)

// tiny sizes show that an experiment runs to its end, and nothing else.
var tiny = sizes{
	conns: 8, body: 500, load: 100 * time.Millisecond, warm: 10 * time.Millisecond, deliver: 300, queue: 100, open: 200 * time.Millisecond, rate: 200, syncs: 5,
	backlog: 2000, waiting: 200, drain: 200, endpoints: 20, dead: 300, shrink: 200, rest: 100 * time.Millisecond, idle: 50 * time.Millisecond,
}

// Every experiment that runs unasked runs to its end against the program as it is, fills its rows, and leaves nothing.
func TestEveryExperiment(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "postern", "postern/proxy/bench").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// With the race detector in it, this binary takes a second to start, and the experiments start some dozens.
	roleProgram = func() (string, error) { return filepath.Join(bin, "bench"), nil }
	defer func() { roleProgram = os.Executable }()
	t.Setenv("POSTERN_TEST_DATABASE_URL", pgtest.DSN(t)) // instead of one for each experiment
	l := testLab(t, 1)
	l.report.Groups, l.sizes, l.binary, l.progress = nil, tiny, filepath.Join(bin, "postern"), t.Output()
	l.only = experimentNames()[:len(experiments)-1] // by name, so that a Postgres that is missing fails the test
	if err := l.runAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, g := range l.report.Groups {
		if len(g.Rows) == 0 || g.About == "" {
			t.Errorf("%s has no rows, or says nothing about them: %+v", g.Name, g)
		}
		for _, r := range g.Rows {
			if r.Value.Median < 0 || r.Value.Median == 0 && r.Name != "idle CPU" {
				t.Errorf("%s: %s is %v", g.Name, r.Name, r.Value)
			}
		}
	}
	var table bytes.Buffer
	if err := l.report.writeTable(&table); err != nil || table.Len() < 1000 {
		t.Errorf("%v: %s", err, table.String())
	}
	if left, err := filepath.Glob(filepath.Join(l.dir, "data-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
