package spooltest_test

import (
	"strings"
	"testing"
	"time"

	"postern/spool"
	"postern/spool/spooltest"
)

func TestOpen(t *testing.T) {
	s := spooltest.Open(t, spooltest.Config(t))
	ev := &spool.Event{ID: "a", Endpoint: "https://a.example", Method: "GET", Target: "https://a.example/", AcceptedAt: time.Now()}
	if _, err := s.Append(t.Context(), ev); err != nil {
		t.Fatal(err)
	}
}

// fake notes what a check complains of.
type fake struct {
	testing.TB
	said []string
}

func (f *fake) Helper() {}
func (f *fake) Errorf(format string, args ...any) {
	f.said = append(f.said, format)
}

func TestCheckComplains(t *testing.T) {
	f := &fake{TB: t}
	spooltest.Check(f, t.TempDir())
	if len(f.said) != 1 || !strings.Contains(f.said[0], "check") {
		t.Errorf("a directory without a spool: %q", f.said)
	}
}
