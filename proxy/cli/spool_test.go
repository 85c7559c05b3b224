package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/spool"
)

// filledSpool makes a spool with n waiting events, closes it in order and returns its directory.
func filledSpool(t *testing.T, n int) string {
	t.Helper()
	cfg := spool.Defaults()
	cfg.Dir = filepath.Join(t.TempDir(), "data")
	cfg.MaxBytes = 64 << 20
	s, err := spool.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e := &spool.Event{
			ID: fmt.Sprintf("evt_%03d", i), ExplicitID: true, Endpoint: "https://p.example", Target: "https://p.example/pb", Method: "POST",
			Body: []byte(strings.Repeat("x", 600)), AcceptedAt: time.Now(), NotBefore: time.Now().Add(time.Hour),
		}
		if _, err := s.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cfg.Dir
}

func TestDamagedSpoolIsToldAndSalvaged(t *testing.T) {
	dir := filledSpool(t, 200)
	file, err := os.OpenFile(filepath.Join(dir, "spool.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 128<<10), 0); err != nil { // both meta pages, and some others
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	got := typed{args: []string{"spool", "check", "--data", dir}}.run(t)
	if got.code != 1 || !strings.Contains(got.stdout, "\nproblem ") || strings.Contains(got.stdout, "whole") || !strings.Contains(got.stderr, "`postern spool salvage`") {
		t.Errorf("check: code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	got = typed{args: []string{"spool", "check", "--data", dir, "--json"}}.run(t)
	var report checkReport
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != 1 || report.Whole || len(report.Problems) == 0 || report.Dir != dir {
		t.Errorf("check --json: code %d, %v, %+v", got.code, err, report)
	}
	if got = (typed{args: []string{"spool", "compact", "--data", dir}}).run(t); got.code != 1 || got.stdout != "" {
		t.Errorf("compact: code %d\n%s%s", got.code, got.stdout, got.stderr)
	}

	got = typed{args: []string{"spool", "salvage", "--data", dir, "--json"}}.run(t)
	var salvaged struct {
		Recovered, Lost int64
		Kept            string
	}
	if err := json.Unmarshal([]byte(got.stdout), &salvaged); err != nil || got.code != 0 {
		t.Fatalf("salvage: code %d, %v\n%s%s", got.code, err, got.stdout, got.stderr)
	}
	if salvaged.Recovered < 1 || salvaged.Recovered > 200 || !strings.Contains(salvaged.Kept, "spool.db.corrupt-") {
		t.Errorf("salvaged %+v, want some of 200 events", salvaged)
	}
	got = typed{args: []string{"spool", "check", "--data", dir}}.run(t)
	if want := fmt.Sprintf("pending            %d\n", salvaged.Recovered); got.code != 0 || !strings.Contains(got.stdout, want) {
		t.Errorf("check after the salvage: code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

func TestCompactReportsItsProgress(t *testing.T) {
	dir := filledSpool(t, 50)
	got := typed{args: []string{"spool", "compact", "--data", dir}}.run(t)
	if got.code != 0 || !strings.HasPrefix(got.stdout, dir+": ") {
		t.Errorf("code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for line := range strings.Lines(got.stderr) {
		if !strings.HasPrefix(line, "compacted: ") || !strings.HasSuffix(line, " %)\n") {
			t.Errorf("a line that is no progress: %q", line)
		}
	}
	if !strings.HasSuffix(got.stderr, "(100 %)\n") {
		t.Errorf("the progress does not reach its end:\n%s", got.stderr)
	}
}

func TestSpoolErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("locking: %w", spool.ErrInUse), "stop it first"},
		{fmt.Errorf("opening: %w", spool.ErrNewerFormat), "use that version or a newer one"},
		{os.ErrPermission, "permission denied"},
	} {
		if got := spoolError("dir", c.err).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%v is told as %q, want %q in it", c.err, got, c.want)
		}
	}
}

func TestSalvageTexts(t *testing.T) {
	tests := map[string]struct {
		report spool.SalvageReport
		want   string
	}{
		"all is there":     {spool.SalvageReport{Recovered: 9, Unit: spool.UnitEvents}, "0 events lost"},
		"one is lost":      {spool.SalvageReport{Lost: 1, Unit: spool.UnitEvents}, "1 event lost"},
		"by numbers":       {spool.SalvageReport{Lost: 7, Estimate: true, Unit: spool.UnitEvents}, "7 events lost by the numbers that are missing"},
		"pages":            {spool.SalvageReport{Lost: 2, Estimate: true, Unit: spool.UnitPages}, "2 pages lost, and nothing tells how many events"},
		"the file":         {spool.SalvageReport{Lost: 1, Unit: spool.UnitFile}, "the whole content of the file lost"},
		"some in doubt":    {spool.SalvageReport{Lost: 2, Doubtful: 3, Unit: spool.UnitEvents}, "3 may have been delivered before: they are sent again, with the same IDs. For each that was, another event is lost."},
		"doubt, by number": {spool.SalvageReport{Doubtful: 4, Estimate: true, Unit: spool.UnitEvents}, "4 may have been delivered before: nothing is left that tells."},
	}
	for name, tt := range tests {
		if got := lostText(&tt.report) + "; " + doubtText(&tt.report); !strings.Contains(got, tt.want) || tt.report.Doubtful == 0 && strings.Contains(got, "before") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
