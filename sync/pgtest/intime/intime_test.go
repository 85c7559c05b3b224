package intime

import (
	"testing"
	"time"
)

// judge notes what a test would have been told.
type judge struct {
	testing.TB
	failed bool
}

func (j *judge) Helper()               {}
func (j *judge) Errorf(string, ...any) { j.failed = true }

func TestHold(t *testing.T) {
	for name, c := range map[string]struct {
		took   []time.Duration
		failed bool
	}{
		"at once":      {[]time.Duration{1}, false},
		"at the limit": {[]time.Duration{2}, false},
		"late once":    {[]time.Duration{9, 1}, false},
		"late often":   {[]time.Duration{9, 9, 9, 9, 2}, false},
		"late always":  {[]time.Duration{9, 9, 9, 9, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j, n := &judge{}, 0
			Hold(j, 2, "it", func() time.Duration { n++; return c.took[n-1] })
			if j.failed != c.failed || n != len(c.took) {
				t.Errorf("failed %v after %d tries, want %v after %d", j.failed, n, c.failed, len(c.took))
			}
		})
	}
}

func TestSince(t *testing.T) {
	j, n := &judge{}, 0
	Since(j, time.Hour, "it", func() { n++ })
	Since(j, -1, "it", func() { n++ })
	if !j.failed || n != 1+tries {
		t.Errorf("failed %v after %d tries", j.failed, n)
	}
}
