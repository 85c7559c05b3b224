package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.00", 0.0154: "0.015", 0.654: "0.65", 1.2: "1.20", 9.99: "9.99", 12.34: "12.3", 123.4: "123", 999.4: "999", 1000: "1,000",
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

func TestTable(t *testing.T) {
	d := sample()
	var out bytes.Buffer
	if err := d.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-11-29, 2 CPUs, linux/amd64, go1.26, rounds: 2",
		"ACCEPT: as they come",
		"durable accepts 21,000/s (20,000 to 22,000) 202 only 40,000/s (40,000 to 40,000) 0.53 (0.50 to 0.55) >= 0.75 missed",
		"acknowledgement 2.50 ms (2.00 to 3.00) fsync 1.00 ms (1.00 to 1.00) + 1.50 ms (1.00 to 2.00) <= + 3.00 ms met",
		"ready 1.25 s (1.00 to 1.50) empty 1.00 s (1.00 to 1.00) 1.25 (1.00 to 1.50) <= 2.00 s met",
		"idle CPU 15.0 ms (10.0 to 20.0) - - -",
		"QUEUE: beside a table NOT MEASURED: it needs a Postgres: none",
		"Aims met: 2. Missed: 1 (accept: durable accepts).",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "QUICK") {
		t.Error("a full run is called a quick one")
	}
	columns(t, out.String())
}

// columns holds every row's aim to the place where its heading is.
func columns(t *testing.T, table string) {
	t.Helper()
	at := 0
	for _, line := range strings.Split(table, "\n") {
		switch i := strings.Index(line, "AIM"); {
		case i > 0:
			at = i
		case at > 0 && strings.HasPrefix(line, "  ") && !strings.Contains(line, "NOT MEASURED") && (len(line) <= at || line[at-1] != ' ' || line[at] == ' '):
			t.Errorf("the column AIM is not straight in %q", line)
		}
	}
	if at == 0 {
		t.Error("there is no column AIM")
	}
}

func TestQuickRunsSayThatTheyAre(t *testing.T) {
	d := sample()
	d.Quick = true
	var out bytes.Buffer
	if err := d.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "measure without --quick") {
		t.Errorf("nothing warns of a quick run:\n%s", out.String())
	}
}

func TestWrap(t *testing.T) {
	if got := wrap("one  two three four", 9, 0); got != "one two\n  three\n  four" {
		t.Errorf("%q", got)
	}
	if got := wrap("one two", 9, 3); got != "one\n  two" {
		t.Errorf("%q", got)
	}
	if got := wrap("", 9, 0); got != "" {
		t.Errorf("%q", got)
	}
}

// The command lines that docs/performance.md shows are understood.
func TestDocumentedCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`make bench ARGS="([^"]*)"`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 6 {
		t.Fatalf("only %d command lines were found", len(lines))
	}
	for _, line := range lines {
		if _, err := parseOptions(strings.Fields(line[1]), io.Discard); err != nil {
			t.Errorf("%s: %v", line[0], err)
		}
	}
}
