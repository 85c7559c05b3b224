package pagefile

import (
	"testing"
)

func TestWholeDatabases(t *testing.T) {
	for name, d := range databases() {
		t.Run(name, func(t *testing.T) {
			path, want := d.build(t)
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if d.pageSize != 0 && f.PageSize() != d.pageSize {
				t.Errorf("page size %d, want %d", f.PageSize(), d.pageSize)
			}
			if err := f.Verify(t.Context()); err != nil {
				t.Errorf("Verify: %v", err)
			}
			if d := f.MetaDamage(); d != nil {
				t.Errorf("MetaDamage: %v", d)
			}
			sure, doubtful, report := walkAll(t, f)
			requireSame(t, sure, want)
			if len(doubtful) > 0 || report.DamagedPages > 0 || report.SkippedEntries > 0 || report.First != nil {
				t.Errorf("%d doubtful entries, report %+v", len(doubtful), report)
			}
			if report.Entries != len(want) || report.Pages > report.Whole.Len() {
				t.Errorf("report %+v of %d entries", report, len(want))
			}
			checkScan(t, f, want)
		})
	}
}

// checkScan checks that Scan finds every entry, whatever else it finds, and that it passes over what a Walk has read.
func checkScan(t *testing.T, f *File, want contents) {
	t.Helper()
	found := map[string]bool{}
	_, err := f.Scan(t.Context(), nil, func(e Entry) bool {
		found[string(e.Key)+"="+string(e.Value)] = true
		if !e.Doubtful {
			t.Fatal("an entry of Scan is not doubtful")
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	_, err = f.Walk(t.Context(), func(e Entry) bool {
		if !found[string(e.Key)+"="+string(e.Value)] {
			missing++
		}
		return true
	})
	if err != nil || missing > 0 {
		t.Errorf("Scan did not find %d of %d entries (%v)", missing, len(want), err)
	}
}
