package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sampleGrowth() growthData {
	return growthData{Date: "2026-11-29", Go: "go1.26", System: "linux/amd64", CPUs: 2, Rounds: 2, Curves: []curve{{
		Title: "Endpoints", X: "named endpoints", Lines: []line{{Name: delivered, Points: []point{{1, over([]float64{100, 200})}, {10, over([]float64{90})}}}},
	}}}
}

func TestRedrawMakesTheSamePicture(t *testing.T) {
	dir := t.TempDir()
	data, first, second := filepath.Join(dir, "d.json"), filepath.Join(dir, "img", "1.svg"), filepath.Join(dir, "2.svg")
	g := sampleGrowth()
	if err := writeJSON(data, g); err != nil {
		t.Fatal(err)
	}
	if err := mayWrite(first); err != nil {
		t.Fatal(err)
	}
	if err := g.draw(first); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"--json", data, "--plot", second}, nil, nil); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(first)
	b, _ := os.ReadFile(second)
	if len(a) == 0 || string(a) != string(b) || !strings.Contains(string(a), "rounds: 2") {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
	if err := os.WriteFile(data, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := redraw(data, second); err == nil || !strings.Contains(err.Error(), "--growth") {
		t.Errorf("%v", err)
	}
}

// The picture in the documentation is that of the data beside it.
func TestThePictureInTheDocumentation(t *testing.T) {
	const data, picture = "../../docs/img/growth.json", "../../docs/img/growth.svg"
	made := filepath.Join(t.TempDir(), "growth.svg")
	if err := redraw(data, made); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(picture); err != nil || string(got) != string(want) {
		t.Errorf("docs/img/growth.svg is not what docs/img/growth.json makes (%v): make bench-redraw", err)
	}
}

func TestGrowingReachesTenTimesTheTable(t *testing.T) {
	g := options{}.growing()
	last := func(n int) int { return n - 1 }
	if g.waiting[last(len(g.waiting))] != 10*full.backlog || g.endpoints[last(len(g.endpoints))] != 10*full.endpoints || g.conns[last(len(g.conns))] != 10*full.conns ||
		g.bodies[last(len(g.bodies))] < 10*full.body {
		t.Errorf("%+v", g)
	}
}
