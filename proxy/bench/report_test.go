package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func sample() reportData {
	return reportData{Date: "2026-11-29", Go: "go1.26", System: "linux/amd64", CPUs: 2, Rounds: 2, Groups: []group{
		{Name: "accept", About: "as they come", Rows: []row{
			row{Name: "durable accepts", Unit: "/s", Value: over([]float64{20000, 22000})}.beside("202 only", []float64{40000, 40000}).atLeast(0.75),
			row{Name: "acknowledgement", Unit: "ms", Value: over([]float64{2, 3})}.above("fsync", []float64{1, 1}).atMost(3),
		}},
		{Name: "queue", About: "beside a table", LeftOut: "it needs a Postgres: none"},
		{Name: "idle", About: "nothing to do", Rows: []row{
			row{Name: "ready", Unit: "s", Value: over([]float64{1, 1.5})}.beside("empty", []float64{1, 1}).within(2),
			{Name: "idle CPU", Unit: "ms", Value: over([]float64{10, 20})},
		}},
	}}
}

func TestJSONKeepsEveryRound(t *testing.T) {
	d, file := sample(), filepath.Join(t.TempDir(), "bench.json")
	if err := writeJSON(file, d); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var back reportData
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	first, second := back.Groups[0].Rows[0], back.Groups[0].Rows[1]
	if len(first.Ratio.Rounds) != 2 || first.Ratio.Rounds[1] != 0.55 || first.Aim.Met || first.Aim.Of != "ratio" {
		t.Errorf("came back as %+v", first)
	}
	if second.Difference.Max != 2 || second.Ratio != nil || !second.Aim.Met || second.Aim.Of != "difference" {
		t.Errorf("came back as %+v", second)
	}
	idle := back.Groups[2].Rows
	if !idle[0].Aim.Met || idle[0].Aim.Of != "value" || idle[1].Aim != nil || idle[1].Reference != nil || back.Groups[1].LeftOut == "" {
		t.Errorf("came back as %+v", back.Groups)
	}
}

func TestAims(t *testing.T) {
	for _, c := range []struct {
		name string
		row  row
		met  bool
	}{
		{"a value that reaches", row{Value: over([]float64{5})}.atLeast(5), true},
		{"a value that does not", row{Value: over([]float64{5})}.atLeast(5.1), false},
		{"a value that stays within", row{Value: over([]float64{5})}.atMost(5), true},
		{"a ratio that is too high", row{Value: over([]float64{5})}.beside("x", []float64{2}).atMost(2), false},
		{"a ratio does not spoil an aim of the value", row{Value: over([]float64{5})}.beside("x", []float64{1}).within(5), true},
		{"a difference", row{Value: over([]float64{5})}.above("x", []float64{2}).atMost(2.9), false},
	} {
		if c.row.Aim.Met != c.met {
			t.Errorf("%s: %+v", c.name, *c.row.Aim)
		}
	}
}
