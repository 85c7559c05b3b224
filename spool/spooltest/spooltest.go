// Package spooltest opens spools for tests and holds them to their promises: when the test ends, the spool is closed and
// every page, record, index and count of it is checked.
//
// It leaves out time: a test that wants another clock sets Config.Now.
package spooltest

import (
	"context"
	"testing"

	"postern/spool"
)

// Config returns the defaults, smaller, with a directory of the test's own.
func Config(t testing.TB) spool.Config {
	t.Helper()
	cfg := spool.Defaults()
	cfg.Dir = t.TempDir()
	cfg.MaxBytes = 64 << 20
	return cfg
}

// Open opens a spool. Whether or not the test closes it, Check runs when the test ends.
func Open(t testing.TB, cfg spool.Config) *spool.Spool {
	t.Helper()
	s, err := spool.Open(cfg)
	if err != nil {
		t.Fatalf("open the spool: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close the spool: %v", err)
		}
		Check(t, cfg.Dir)
	})
	return s
}

// Check reports everything that is wrong with the spool in a directory that no process uses.
func Check(t testing.TB, dir string) {
	t.Helper()
	report, err := spool.Check(dir)
	if err != nil {
		t.Errorf("check the spool: %v", err)
	}
	for _, problem := range report.Problems {
		t.Errorf("spool: %s", problem)
	}
}
