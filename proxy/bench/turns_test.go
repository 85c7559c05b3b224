package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func testLab(t *testing.T, rounds int) *lab {
	t.Helper()
	return &lab{options: options{rounds: rounds}, dir: t.TempDir(), progress: io.Discard, report: reportData{Groups: []group{{Name: "test"}}}}
}

// Contenders go forwards and backwards, so that none is always the one after a pause.
func TestTurns(t *testing.T) {
	l := testLab(t, 3)
	var order []string
	one := func(name string) contender {
		return contender{name, func(context.Context) (figures, error) {
			order = append(order, name)
			return figures{"n": float64(len(order))}, nil
		}}
	}
	table, err := l.turns(t.Context(), one("a"), one("b"))
	if err != nil || strings.Join(order, "") != "abbaab" {
		t.Fatalf("%v, %v", order, err)
	}
	if !slices.Equal(table.of("a", "n"), []float64{1, 4, 5}) || !slices.Equal(table.of("b", "n"), []float64{2, 3, 6}) {
		t.Errorf("%v", table)
	}
	defer func() {
		if recover() == nil {
			t.Error("a figure that nobody measured is taken for one")
		}
	}()
	table.of("a", "m")
}

func TestTurnsEndWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	_, err := testLab(t, 3).turns(t.Context(), contender{"a", func(context.Context) (figures, error) {
		calls++
		return nil, broken
	}})
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// An experiment that lacks something is left out, with the reason; named, it fails the run.
func TestWhatLacksSomething(t *testing.T) {
	all := experiments
	defer func() { experiments = all }()
	lack := needs{"a Postgres", errors.New("none is there")}
	experiments = []experiment{
		{name: "lacking", about: func(*lab) string { return "" }, run: func(*lab, context.Context) error { return lack }},
		{name: "other", about: func(*lab) string { return "" }, run: func(l *lab, _ context.Context) error {
			l.add(row{Name: "x", Value: over([]float64{1})})
			return nil
		}},
	}
	l := testLab(t, 1)
	l.report.Groups = nil
	if err := l.runAll(t.Context()); err != nil || len(l.report.Groups) != 2 || !strings.Contains(l.report.Groups[0].LeftOut, "needs a Postgres: none is there") {
		t.Errorf("%v, %+v", err, l.report.Groups)
	}
	l.only = []string{"lacking"}
	if err := l.runAll(t.Context()); !errors.Is(err, lack.err) {
		t.Errorf("asked for by name: %v", err)
	}
}
