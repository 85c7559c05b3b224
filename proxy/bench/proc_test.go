package main

import (
	"errors"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const after = " S 1 42 42 0 -1 4194304 1800 0 3 0 123 45 7 8 20 0 9 0 5000 1 2 3"
	for name, c := range map[string]struct {
		text string
		want time.Duration
		err  error
	}{
		"plain":               {"42 (postern)" + after, 1680 * time.Millisecond, nil},
		"a name with blanks":  {"42 (a b) c (d)" + after, 1680 * time.Millisecond, nil},
		"too short":           {"42 (postern) S 1 2", 0, errProc},
		"not a number":        {"42 (x) S 1 42 42 0 -1 4194304 1800 0 3 0 12x 45 7", 0, errProc},
		"nothing":             {"", 0, errProc},
		"a name and no field": {"42 (x)", 0, errProc},
	} {
		if got, err := parseStat(c.text); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus("Name:\tpostern\nVmRSS:\t   10000 kB\nRssAnon:\t    4000 kB\nRssFile:\t 6000 kB\n")
	if err != nil || got != (memory{10.24, 4.096}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseStatus("Name:\tzombie\n"); !errors.Is(err, errProc) {
		t.Errorf("a process without memory: %v", err)
	}
}
