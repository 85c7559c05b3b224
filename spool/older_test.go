package spool

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A copy of the file that is put back is sound. That events were accepted since is said once, by a check and by a start.
func TestOlderFile(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for i := range 5 {
		r.append(event(fmt.Sprint("early", i), endpointA, "x"))
	}
	r.close()
	file, err := os.ReadFile(r.dirOf().file())
	r.must(err)
	r.open()
	for i := range 7 {
		r.append(event(fmt.Sprint("late", i), endpointA, "x"))
	}
	r.reopen()
	if log.Len() > 0 {
		t.Errorf("said of the file that it has always been:\n%s", log.String())
	}
	r.close()
	r.must(os.WriteFile(r.dirOf().file(), file, 0o600))

	if report, err := Check(r.cfg.Dir); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "7 events were accepted since") {
		t.Errorf("check: %+v, %v", report, err)
	}
	for range 2 {
		r.open()
		if st := r.Stats(); st.Pending != 5 {
			t.Errorf("stats %+v", st)
		}
		r.close()
	}
	if strings.Count(log.String(), "older than what was here") != 1 || !strings.Contains(log.String(), "accepted_since=7") {
		t.Errorf("said:\n%s", log.String())
	}
	r.open()
	r.append(event("after", endpointA, "x"))
}

// The number is noted while Postern runs, so that it is there after a kill, too.
func TestNumberIsNotedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.append(event("a", endpointA, "x"))
		r.append(event("b", endpointA, "x"))
		time.Sleep(2 * tickEvery)
		synctest.Wait()
		r.Spool.mu.Lock() // the rig has one, too
		next := r.counters.nextSeq
		r.Spool.mu.Unlock()
		if got := r.dirOf().notedSeq(); got != next || got < 2 {
			t.Errorf("noted %d, the next one is %d", got, next)
		}
		if r.dirOf().cleanlyClosed() {
			t.Error("it counts as cleanly closed")
		}
	})
}

// TestSalvageLeavesTheMark: also after a salvage a file that is gone is missed, and one that was salvaged is not called older.
func TestSalvageLeavesTheMark(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	r := newRig(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.append(event("a", endpointA, "x"))
	r.close()
	if _, err := Salvage(r.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.close()
	if text := log.String(); strings.Contains(text, "older than") || strings.Contains(text, "is gone") {
		t.Errorf("after a salvage: %s", text)
	}
	if _, err := Salvage(r.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	r.must(os.Remove(r.dirOf().file()))
	r.open()
	if text := log.String(); !strings.Contains(text, "is gone") {
		t.Errorf("without its file: %s", text)
	}
}
