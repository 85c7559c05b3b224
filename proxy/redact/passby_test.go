package redact_test

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// typed are packages that talk to the person who typed the command or runs a benchmark: they show people's own words
// back to them. What they print to standard error passes through redact at one place, proxy/cli's finish.
var typed = []string{"postern/proxy/cli", "postern/proxy/client", "postern/proxy/demo", "postern/proxy/bench", "postern/proxy/fleet",
	"postern/configs", "postern/examples/", "postern/proxy/stage", "postern/sync/pgtest", "postern/spool/spooltest", "postern/proxy/redact"}

// No text that may hold a secret reaches the log, an error, a problem document, a metric or a row of Postgres but
// through this package.
func TestNothingPassesBy(t *testing.T) {
	p := loadProgram(t)
	var files []*ast.File
	for _, path := range p.order {
		if !slices.ContainsFunc(typed, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			files = append(files, p.files[path]...)
		}
	}
	if len(files) < 150 {
		t.Fatalf("only %d files were looked at", len(files))
	}
	f := newFlow(p)
	f.run(files)
	for pos, what := range f.found {
		t.Errorf("%v: %s; show it by proxy/redact, or end the line with %q and the reason why it may show", p.fset.Position(pos), what, excuse)
	}
	if len(f.excused) > 6 {
		t.Errorf("%d lines are excused: too many to be exceptions", len(f.excused))
	}
}

// Every line of the package in testdata that ends in "// leaks" is found, and no other.
func TestWhatPassesByIsFound(t *testing.T) {
	p := loadProgram(t)
	files := p.with(t, "testdata/leaky")
	f := newFlow(p)
	f.run(files)
	want, got := map[string]bool{}, map[string]string{}
	for _, file := range files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if c.Text == "// leaks" {
					want[line(p, c)] = true
				}
			}
		}
	}
	for pos, what := range f.found {
		at := p.fset.Position(pos)
		got[fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)] = what
	}
	for at, what := range got {
		if !want[at] {
			t.Errorf("%s is no leak, but: %s", at, what)
		}
	}
	for at := range want {
		if got[at] == "" {
			t.Errorf("%s leaks, and was not found", at)
		}
	}
	if len(want) < 25 {
		t.Errorf("only %d leaks are in testdata", len(want))
	}
}

func line(p *program, n ast.Node) string {
	at := p.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}
