package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// idSet are the IDs of events.
type idSet map[string]bool

func (a idSet) without(b idSet) idSet {
	rest := make(idSet)
	for id := range a {
		if !b[id] {
			rest[id] = true
		}
	}
	return rest
}

// unfinished lists what waits and what is dead, whether it can be decoded or not: what is found damaged later, when it is
// to be sent, is set aside then.
func unfinished(t *testing.T, s *Spool) idSet {
	t.Helper()
	var ids idSet
	if err := s.store.view(func(tx *bolt.Tx) (err error) { ids, err = eventsOf(tx); return err }); err != nil {
		t.Fatal(err)
	}
	return ids
}

func eventsOf(tx *bolt.Tx) (idSet, error) {
	ids := make(idSet)
	events := tx.Bucket(layout.Events.Name())
	return ids, tx.Bucket(layout.IDs.Name()).ForEach(func(k, seq []byte) error {
		if id, ok := layout.UnpackID(k); ok && events.Get(seq) != nil {
			ids[id] = true
		}
		return nil
	})
}

// reported reads a salvage's report from the log line that tells of it; it is empty where there was none.
func reported(t *testing.T, log string) (r SalvageReport) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"lost_unit"`) {
			continue
		}
		var said struct {
			Recovered, Doubtful, Lost int64
			LostUnit                  string `json:"lost_unit"`
			Estimate                  bool
			SetAside                  int64 `json:"set_aside"`
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		return SalvageReport{Recovered: said.Recovered, Doubtful: said.Doubtful, Lost: said.Lost, Unit: said.LostUnit, Estimate: said.Estimate, SetAside: said.SetAside}
	}
	return r
}

// misjudged holds a report against what became of the events, by their IDs: numbers alone would let one that came back
// stand in for one that was lost.
func misjudged(lost, back idSet, r SalvageReport) string {
	n := int64(len(lost))
	switch {
	case int64(len(back)) > r.Doubtful:
		return fmt.Sprintf("%d came back that were finished, where %d were doubtful: %v", len(back), r.Doubtful, back)
	case r.Unit != UnitEvents && r.Unit != "" || r.Estimate:
		return ""
	case n < r.Lost || n > r.Lost+r.Doubtful:
		return fmt.Sprintf("%d are lost, and %d are said to be, with %d doubtful: %v", n, r.Lost, r.Doubtful, lost)
	}
	return ""
}

// TestTwoPagesLost takes every two pages out of a file. Whatever they are, the other buckets tell exactly what is lost, and
// nothing comes back that was finished. Only the page with the names of the buckets cannot be spared.
func TestTwoPagesLost(t *testing.T) {
	t.Parallel()
	file, waiting := wornSpecimen(t)
	inUse, dir := usedPages(t, file), scratch(t)
	var root []int
	for i, a := range inUse {
		for _, b := range inUse[i:] {
			report, lost, back := without(t, dir, file, waiting, a, b)
			switch exact := !report.Estimate && report.Unit == UnitEvents && report.Doubtful == 0; {
			case exact && (int64(len(lost)) != report.Lost || len(back) > 0):
				t.Errorf("without the pages %d and %d %d events are lost, %d came back, and it says %+v", a, b, len(lost), len(back), report)
			case !exact && a == b:
				root = append(root, a)
			case !exact && !slices.Contains(root, a) && !slices.Contains(root, b):
				// The root may be the second one, and come alone only later.
				if alone, _, _ := without(t, dir, file, waiting, b); !alone.Estimate {
					t.Errorf("without the pages %d and %d it says no more than %+v", a, b, report)
				}
			}
		}
	}
	if len(root) != 1 {
		t.Errorf("without one of %v nothing is exact any more", root)
	}
}

// TestPagesLost takes larger sets of pages out of a file: none is lost without a word, and none comes back that was finished
// and not named doubtful.
func TestPagesLost(t *testing.T) {
	t.Parallel()
	file, waiting := wornSpecimen(t)
	inUse, dir := usedPages(t, file), scratch(t)
	rnd := rand.New(rand.NewPCG(4, 2))
	var doubtful, estimated int
	for range 500 {
		set := make([]int, 3+rnd.IntN(len(inUse)/2))
		for i := range set {
			set[i] = inUse[rnd.IntN(len(inUse))]
		}
		report, lost, back := without(t, dir, file, waiting, set...)
		if problem := misjudged(lost, back, report); problem != "" {
			t.Errorf("without the pages %v: %s\n%+v", set, problem, report)
		}
		switch {
		case report.Estimate || report.Unit != UnitEvents:
			estimated++
		case report.Doubtful > 0:
			doubtful++
		}
	}
	if doubtful == 0 || estimated == 0 {
		t.Errorf("not every kind of report was tried: %d with doubtful events, %d estimated", doubtful, estimated)
	}
}

// without salvages a file without some of its pages.
func without(t *testing.T, dir string, file []byte, waiting idSet, pages ...int) (report SalvageReport, lost, back idSet) {
	t.Helper()
	harmed := bytes.Clone(file)
	for _, n := range pages {
		clear(page(harmed, n))
	}
	report, got := salvaged(t, dir, harmed)
	return report, waiting.without(got), got.without(waiting)
}

// wornSpecimen is a specimen in which events were removed as well: numbers that left no trace.
func wornSpecimen(t *testing.T) (file []byte, waiting idSet) {
	t.Helper()
	r := newRig(t, func(c *Config) { c.MaxBytes = 32 * mib })
	r.store.cur.db.NoSync = true
	waiting = make(idSet)
	for i := range 400 {
		ev := event(fmt.Sprint(i), endpointA, strings.Repeat("x", 300))
		if i%5 == 0 {
			ev.TTL = time.Hour
		}
		r.append(ev)
		waiting[ev.ID] = true
	}
	for i, l := range r.lease(endpointA, 300) {
		switch i % 4 {
		case 0:
			r.finish(l, delivered(l))
			delete(waiting, l.Event.ID)
		case 1:
			r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictRetry, NextAttempt: time.Now()})
		case 2:
			r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
		default:
			r.Release(l)
			r.must(r.Delete(t.Context(), l.Event.ID))
			delete(waiting, l.Event.ID)
		}
	}
	return inUse(r), waiting
}

// inUse is a spool's file as a kill leaves it: without a list of free pages, so that nothing tells which of them have what
// was there before.
func inUse(r *rig) []byte {
	r.t.Helper()
	file, err := os.ReadFile(r.dirOf().file())
	r.must(err)
	for n := len(file) - pageSize; bytes.Equal(file[n:], make([]byte, pageSize)); n -= pageSize {
		file = file[:n]
	}
	return file
}

// usedPages lists the pages that a walk comes to with entries of a bucket, and those above them.
func usedPages(t *testing.T, file []byte) (used []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := pagefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sound := func() bool { return f.Verify(t.Context()) == nil }
	if !sound() {
		t.Fatal("the specimen is not sound")
	}
	// A page is in use where the file is not sound without it.
	for n := 2; n < len(file)/pageSize; n++ {
		if overwrite(t, path, n, make([]byte, pageSize)); !sound() {
			used = append(used, n)
		}
		overwrite(t, path, n, page(file, n))
	}
	return used
}

func overwrite(t *testing.T, path string, n int, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(with, int64(n)*pageSize)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// scratch is a directory in memory where there is a place for that: hundreds of syncs prove nothing here.
func scratch(t *testing.T) string {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "postern-salvage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// salvaged salvages a file in an empty directory, which it leaves empty.
func salvaged(t *testing.T, dir string, file []byte) (report SalvageReport, got idSet) {
	t.Helper()
	d := &directory{path: dir}
	err := errors.Join(os.WriteFile(d.file(), file, 0o600), os.WriteFile(d.join(cleanName), make([]byte, 16), 0o600))
	if err == nil {
		report, err = d.salvage(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(d.file(), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) (err error) { got, err = eventsOf(tx); return err })
	err = errors.Join(err, db.Close())
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return report, got
}
