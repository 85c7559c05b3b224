package main

import (
	"errors"
	"os"
	"testing"
)

func TestCPU(t *testing.T) {
	used, err := cpuOf(os.Getpid())
	if err != nil || used <= 0 {
		t.Errorf("%v, %v", used, err)
	}
	if _, err := cpuOf(1 << 30); !errors.Is(err, errProc) {
		t.Errorf("a process that is not there: %v", err)
	}
	if got, err := parseSchedstat("1070989 27431195 38\n"); err != nil || got != 1070989 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "x 1 2"} {
		if _, err := parseSchedstat(text); !errors.Is(err, errProc) {
			t.Errorf("%q: %v", text, err)
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
