package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.00", 0.654: "0.65", 1.2: "1.20", 9.99: "9.99", 12.34: "12.3", 123.4: "123", 999.4: "999", 1000: "1,000",
		21999.6: "22,000", 1e6: "1,000,000", -1234: "-1,234", 123456: "123,456",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%v): got %q, want %q", x, got, want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		values []float64
		unit   string
		want   string
	}{
		{[]float64{21000}, "/s", "21,000/s"},
		{[]float64{1.5}, "ms", "1.50 ms"},
		{[]float64{0.6, 0.7, 0.65}, "", "0.65 (0.60 to 0.70)"},
		{[]float64{19, 21, 20}, "MB", "20.0 MB (19.0 to 21.0)"},
	} {
		if got := quantity(over(c.values), c.unit); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func sample() reportData {
	return reportData{Date: "2026-11-29", Go: "go1.26", System: "linux/amd64", CPUs: 2, Rounds: 2, Rows: []row{
		row{Name: "durable accepts", Unit: "/s", Value: over([]float64{20000, 22000}), What: "as they come"}.
			beside("202 only", []float64{40000, 40000}).ratioAtLeast(0.65),
		row{Name: "time to ready", Unit: "s", Value: over([]float64{1, 1.5}), What: "after a stop"}.atMost(2),
		{Name: "idle CPU", Unit: "ms", Value: over([]float64{10, 20}), What: "in 10s"},
	}}
}

func TestTable(t *testing.T) {
	d := sample()
	var out bytes.Buffer
	if err := d.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	want := `2026-11-29, 2 CPUs, linux/amd64, go1.26. Median of 2 rounds (lowest to highest); reference and subject in turns.

                 POSTERN                       REFERENCE                              RATIO                AIM              WHAT WAS MEASURED
durable accepts  21,000/s (20,000 to 22,000)   202 only 40,000/s (40,000 to 40,000)   0.53 (0.50 to 0.55)  >= 0.65, missed  as they come
time to ready    1.25 s (1.00 to 1.50)         -                                      -                    <= 2.00 s, met   after a stop
idle CPU         15.0 ms (10.0 to 20.0)        -                                      -                    -                in 10s
`
	if got := squeeze(out.String()); got != squeeze(want) {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	columns(t, out.String())
}

// squeeze makes runs of blanks one, so that the comparison is about the content; columns checks the rest.
func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func columns(t *testing.T, table string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")[2:]
	at := strings.Index(lines[0], "AIM")
	for _, line := range lines[1:] {
		if len(line) < at || line[at-1] != ' ' || line[at] == ' ' {
			t.Errorf("the column AIM is not straight in %q", line)
		}
	}
}

func TestShortRunsSayThatTheyAre(t *testing.T) {
	d := sample()
	d.Short = true
	var out bytes.Buffer
	if err := d.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Measure without -short") {
		t.Errorf("nothing warns of a short run:\n%s", out.String())
	}
}

func TestJSONKeepsEveryRound(t *testing.T) {
	d, file := sample(), filepath.Join(t.TempDir(), "bench.json")
	if err := d.writeJSON(file); err != nil {
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
	first := back.Rows[0]
	if len(back.Rows) != 3 || len(first.Ratio.Rounds) != 2 || first.Ratio.Rounds[1] != 0.55 || first.Aim.Met || !back.Rows[1].Aim.Met {
		t.Errorf("came back as %+v", back)
	}
	if back.Rows[2].Aim != nil || back.Rows[2].Reference != nil {
		t.Error("a row without aim and reference came back with one")
	}
}
