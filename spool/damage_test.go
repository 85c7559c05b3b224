package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// filled makes a spool with n waiting events of which every third was delivered and every seventh is dead, and leaves it
// as a kill would: without the mark of a clean close.
func filled(t *testing.T, n int) (dir string, waiting idSet) {
	t.Helper()
	waiting = make(idSet)
	cfg := Defaults()
	cfg.Dir, cfg.MaxBytes = t.TempDir(), 32*mib
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Spool: s, t: t, cfg: cfg}
	s.store.cur.db.NoSync = true
	for i := range n {
		r.append(event(fmt.Sprint(i), endpointA, strings.Repeat("x", 300)))
	}
	for i, l := range r.lease(endpointA, n) {
		switch {
		case i%3 == 0:
			r.finish(l, delivered(l))
		case i%7 == 0:
			r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
			waiting[l.Event.ID] = true
		default:
			r.Release(l)
			waiting[l.Event.ID] = true
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(cfg.Dir, cleanName)); err != nil {
		t.Fatal(err)
	}
	return cfg.Dir, waiting
}

// page returns page i of a file.
func page(file []byte, i int) []byte { return file[i*pageSize : (i+1)*pageSize] }

// rootOf is the page with the names of the buckets, by the newer meta page.
func rootOf(file []byte) int {
	root := func(meta []byte) uint64 { return binary.NativeEndian.Uint64(meta[16+16:]) }
	txid := func(meta []byte) uint64 { return binary.NativeEndian.Uint64(meta[16+48:]) }
	if txid(page(file, 1)) > txid(page(file, 0)) {
		return int(root(page(file, 1)))
	}
	return int(root(page(file, 0)))
}

func TestDamagedFiles(t *testing.T) {
	tests := []struct {
		name     string
		damage   func(file []byte) []byte
		least    int   // percent of the waiting events that must be recovered
		estimate int64 // by how much the loss may be overstated
	}{
		{"both meta pages zero", func(f []byte) []byte { clear(f[:2*pageSize]); return f }, 100, 0},
		{"one meta page zero", func(f []byte) []byte { clear(page(f, 0)); return f }, 100, 0},
		{"a page overwritten", func(f []byte) []byte { copy(page(f, 5), bytes.Repeat([]byte{0xff}, pageSize)); return f }, 90, 0},
		{"cut to 60 %", func(f []byte) []byte { return f[:len(f)*6/10] }, 10, 0},
		{"cut within the meta pages", func(f []byte) []byte { return f[:100] }, 0, 0},
		{"a page copied over another", func(f []byte) []byte { copy(page(f, 3), page(f, 2)); return f }, 90, 0},
		{"every tenth page overwritten", func(f []byte) []byte {
			for i := 2; i < len(f)/pageSize; i += 10 {
				copy(page(f, i), bytes.Repeat([]byte{0xff}, pageSize))
			}
			return f
		}, 50, 0},
		{"no meta page, and every tenth page overwritten", func(f []byte) []byte {
			clear(f[:2*pageSize])
			for i := 2; i < len(f)/pageSize; i += 10 {
				copy(page(f, i), bytes.Repeat([]byte{0xff}, pageSize))
			}
			return f
		}, 50, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, waiting := filled(t, 300)
			path := filepath.Join(dir, dbName)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			root := rootOf(file)
			names := bytes.Clone(page(file, root))
			damaged := tt.damage(file)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			// Which page has the names of the buckets and the counts is up to bbolt. Where it is not damaged, the loss is exact.
			estimate := tt.estimate
			if len(damaged) < (root+1)*pageSize || !bytes.Equal(page(damaged, root), names) {
				estimate = 100 // filled delivers so many
			}
			useAfterDamage(t, dir, waiting, tt.least, estimate)
		})
	}
}

// useAfterDamage opens a damaged spool and does a day's work in it. That many percent of its events must be there, and the
// loss may be overstated by no more than the estimate.
func useAfterDamage(t *testing.T, dir string, waiting idSet, percent int, estimate int64) {
	t.Helper()
	var log bytes.Buffer
	cfg := Defaults()
	cfg.Dir, cfg.MaxBytes = dir, 32*mib
	cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	r := &rig{t: t, cfg: cfg}
	r.open()
	got, report := unfinished(t, r.Spool), reported(t, log.String())
	lost, back := waiting.without(got), got.without(waiting)
	if least := len(waiting) * percent / 100; len(got) < least {
		t.Errorf("%d events, want %d", len(got), least)
	}
	if problem := misjudged(lost, back, report); problem != "" {
		t.Errorf("%s\n%s", problem, log.String())
	}
	// Where the counts and the index are gone, it is an estimate: the summaries of delivered events may be lost as well. Where
	// no old version of the counters is left either, pages are counted: page 5 may be the one with the names of the buckets.
	if percent > 0 && report.Unit == UnitEvents && report.Lost > int64(len(lost))+estimate {
		t.Errorf("%d are lost, and the report is %+v", len(lost), report)
	}
	if st := r.Stats(); st.SalvageLost != report.Lost {
		t.Errorf("stats %+v after %+v", st, report)
	}
	if len(lost) > 0 && strings.Count(log.String(), "damaged") == 0 {
		t.Errorf("nothing was said: %s", log.String())
	}
	for _, l := range r.lease(endpointA, 1000) {
		r.finish(l, delivered(l))
	}
	r.append(event("new", endpointA, "x"))
	r.reopen()
	if l := r.lease(endpointA, 10); len(l) != 1 || l[0].Event.ID != "new" {
		t.Errorf("leases after the restart: %+v", l)
	}
	r.close()
	if report, err := Check(dir); err == nil && len(report.Problems) > 0 {
		// The payload of a dead letter is read when somebody asks for it, and not before: a salvage sets it aside.
		if _, err := Salvage(dir); err != nil {
			t.Error(err)
		}
	}
	r.check()
	kept, _ := filepath.Glob(filepath.Join(dir, dbName+".corrupt-*"))
	if len(lost) > 0 && len(kept) == 0 {
		t.Errorf("damaged files kept: %q", kept)
	}
}

// TestEmptiedFile: a file that lost everything is not taken for a new one; one that never had anything is.
func TestEmptiedFile(t *testing.T) {
	cut := func(path string) error { return os.Truncate(path, 0) }
	tests := map[string]struct {
		mark string // a file beside it
		harm func(path string) error
		lost int64
	}{
		"emptied after a clean close": {cleanName, cut, 1},
		"emptied after a kill":        {"", cut, 1},
		"emptied after damage":        {damagedName, cut, 1},
		"zeros":                       {"", func(path string) error { return os.WriteFile(path, make([]byte, 200_000), 0o600) }, 1},
		"foreign bytes": {"", func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("somebody's notes\n"), 9999), 0o600)
		}, 1},
		"zeros of the same size and age": {cleanName, func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			err = os.WriteFile(path, make([]byte, info.Size()), 0o600)
			return errors.Join(err, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}, 1},
		"foreign bytes where a salvage has been": {"", func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("somebody's notes\n"), 0o600), os.Remove(filepath.Join(filepath.Dir(path), cleanName)),
				os.WriteFile(path+keptSuffix+"20260101T000000", nil, 0o600))
		}, 1},
		"moved away":                     {damagedName, os.Remove, 0},
		"moved away after a clean close": {cleanName, os.Remove, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := newRig(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			r.append(event("a", endpointA, "x"))
			r.close()
			if tt.mark != cleanName {
				r.must(r.dirOf().unmarkClean())
			}
			if tt.mark == damagedName {
				r.must(r.dirOf().markDamaged())
			}
			r.must(tt.harm(r.dirOf().file()))
			r.open()
			if st := r.Stats(); st.SalvageLost != tt.lost || st.Pending != 0 {
				t.Errorf("stats %+v", st)
			}
			r.append(event("b", endpointA, "x"))
			r.reopen()
			if st := r.Stats(); st.SalvageLost != tt.lost || st.Pending != 1 {
				t.Errorf("after another start: %+v", st)
			}
			// How much was in a file that is gone nobody knows, nor whether somebody has it: that is said, but counts for nothing.
			word := "lost_unit=file"
			if tt.lost == 0 {
				word = "the spool's file is gone"
			}
			if strings.Count(log.String(), "\n") != 1 || strings.Count(log.String(), word) != 1 {
				t.Errorf("said:\n%s", log.String())
			}
			if kept, _ := filepath.Glob(r.dirOf().file() + keptSuffix + "2*"); len(kept) == 0 && tt.lost > 0 {
				t.Error("the file was not kept")
			}
		})
	}
}

func (r *rig) dirOf() *directory { return &directory{path: r.cfg.Dir} }

// TestEmptiedFileOffline: the commands say the same of it.
func TestEmptiedFileOffline(t *testing.T) {
	r := newRig(t)
	r.append(event("a", endpointA, "x"))
	r.close()
	r.must(os.Truncate(r.dirOf().file(), 0))
	if report, err := Check(r.cfg.Dir); err != nil || len(report.Problems) != 1 {
		t.Errorf("check: %+v, %v", report, err)
	}
	if report, err := Salvage(r.cfg.Dir); err != nil || report.Lost != 1 || report.Kept == "" {
		t.Errorf("salvage: %+v, %v", report, err)
	}
	r.open()
	if st := r.Stats(); st.SalvageLost != 1 {
		t.Errorf("stats %+v", st)
	}
}

// TestCheckOfAnEmptyFile: looking changes nothing, not even a file without content.
func TestCheckOfAnEmptyFile(t *testing.T) {
	d := &directory{path: t.TempDir()}
	if err := os.WriteFile(d.file(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Check(d.path)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "the file is empty, and nothing was ever accepted in it") {
		t.Errorf("%+v, %v", report, err)
	}
	if _, _, err := Compact(d.path, nil); !errors.Is(err, errNeverUsed) {
		t.Errorf("compact: %v", err)
	}
	if info, err := os.Stat(d.file()); err != nil || info.Size() != 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

// TestForeignDatabase: a database of another program is salvaged by nobody, whole or, where no spool was here, damaged.
func TestForeignDatabase(t *testing.T) {
	whole := func([]byte) {}
	damaged := func(file []byte) {
		for _, n := range pageTypes(file)["leaf"] {
			if !bytes.Contains(page(file, n), []byte("recipes")) {
				clear(page(file, n))
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		harm func(file []byte)
		used bool
	}{"whole": {whole, false}, "whole, where a spool was": {whole, true}, "damaged": {damaged, false}} {
		t.Run(name, func(t *testing.T) {
			d := &directory{path: t.TempDir()}
			db, err := bolt.Open(d.file(), 0o600, &bolt.Options{PageSize: pageSize})
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(err)
			must(db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket([]byte("recipes"))
				for i := 0; err == nil && i < 500; i++ {
					err = b.Put(fmt.Appendf(nil, "cake %04d", i), bytes.Repeat([]byte("sugar "), 20))
				}
				return err
			}))
			must(db.Close())
			file, err := os.ReadFile(d.file())
			must(err)
			tt.harm(file)
			must(os.WriteFile(d.file(), file, 0o600))
			if tt.used {
				must(os.WriteFile(d.join(cleanName), make([]byte, 16), 0o600))
			}
			if report, err := Salvage(d.path); !errors.Is(err, ErrNotSpool) {
				t.Errorf("salvage: %+v, %v", report, err)
			}
			cfg := Defaults()
			cfg.Dir = d.path
			if _, err := Open(cfg); !errors.Is(err, ErrNotSpool) {
				t.Errorf("open: %v", err)
			}
			if after, _ := os.ReadFile(d.file()); !bytes.Equal(after, file) {
				t.Error("the file was changed")
			}
			if left, _ := filepath.Glob(d.join("*" + keptSuffix + "*")); len(left) > 0 || d.has(salvageName) {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestPagesBeyondTheEnd: of a file that was cut, the pages that are missing count as lost, not only those that mention them.
func TestPagesBeyondTheEnd(t *testing.T) {
	file, waiting := specimen(t, 100)
	report, got := salvaged(t, t.TempDir(), file[:pageSize*5/2])
	// The one page that is left may have the counters; then the numbers tell of events.
	least, most := int64(len(file)/pageSize/2), int64(len(file)/pageSize)
	if report.Unit == UnitEvents {
		least, most = int64(len(waiting.without(got))), 100
	}
	if report.Lost < least || report.Lost > most {
		t.Errorf("%+v, want %d to %d lost", report, least, most)
	}
}

// TestOneBadRecord: of a hundred events one is damaged, and the others are handed out.
func TestOneBadRecord(t *testing.T) {
	r := newRig(t)
	for i := range 100 {
		r.append(event(fmt.Sprint(i), endpointA, "x"))
	}
	if err := r.store.update(func(tx *bolt.Tx) error {
		return tx.Bucket(layout.Events.Name()).Put(layout.SeqKey(42), bytes.Repeat([]byte{0xee}, 60))
	}); err != nil {
		t.Fatal(err)
	}
	leases := r.lease(endpointA, 1000)
	if len(leases) != 99 {
		t.Fatalf("%d leased", len(leases))
	}
	for _, l := range leases {
		r.finish(l, delivered(l))
	}
	st := r.Stats()
	if st.SetAside != 1 || st.Leased != 0 || st.Delivered != 99 {
		t.Errorf("stats: %+v", st)
	}
	if _, next, _ := r.Lease(endpointA, r.now(), 1, 1); !next.IsZero() {
		t.Errorf("something is due at %v", next)
	}
	// Its size is no longer known, so the counts are made anew with the next salvage.
	r.close()
	if _, err := Salvage(r.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	r.open()
}

// TestBadProgress: an event is sent although what was recorded of its attempts is damaged; they begin anew, and its time to
// live goes on.
func TestBadProgress(t *testing.T) {
	var log bytes.Buffer
	told := make(chan Committed, 10)
	r := newRig(t, func(c *Config) {
		c.Outbox, c.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
		c.Committed = func(list []Committed) {
			for _, c := range list {
				told <- c
			}
		}
	})
	ev := event("a", endpointA, "x")
	ev.TTL = time.Hour
	r.append(ev)
	fresh := (<-told).Lease
	r.finish(fresh, Result{Attempt: attempt(fresh, 500), Verdict: VerdictRetry, NextAttempt: time.Now()})
	r.must(r.do(func(tx *txn) error {
		tx.put(layout.Progress, layout.SeqKey(fresh.Event.Seq), []byte("damaged"))
		tx.delDeadline(ev, ev.AcceptedAt) // as if it counted from elsewhere
		return nil
	}))
	if leases := r.lease(endpointA, 10); len(leases) != 0 {
		t.Fatalf("leased: %+v", leases)
	}
	if c := <-told; c.Endpoint != endpointA || c.Lease != nil {
		t.Errorf("told: %+v", c)
	}
	leases := r.lease(endpointA, 10)
	if len(leases) != 1 || leases[0].Progress.Attempts != 1 {
		t.Fatalf("leased: %+v", leases)
	}
	r.finish(leases[0], Result{Attempt: attempt(leases[0], 500), Verdict: VerdictRetry, NextAttempt: time.Now()})
	if v, err := r.Get("a", true); err != nil || v.Attempts != 2 || v.State != StateFailed {
		t.Errorf("%+v, %v", v, err)
	}
	rows, _, err := r.Outbox(10)
	if err != nil || len(rows) != 3 || rows[2].Version <= rows[1].Version {
		t.Errorf("outbox: %+v, %v", rows, err)
	}
	if st := r.Stats(); st.SetAside != 0 || st.Failed != 1 || !strings.Contains(log.String(), "counted from one again") {
		t.Errorf("%+v\n%s", st, log.String())
	}
}

func TestFilesThatAreNoSpool(t *testing.T) {
	foreign := func(t *testing.T, path string) {
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("other"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name  string
		make  func(t *testing.T, path string)
		error error
	}{
		{"empty", write(""), nil},
		{"zeros", write(string(make([]byte, 100_000))), nil},
		{"text", write(strings.Repeat("no spool at all\n", 5000)), ErrNotSpool},
		{"another program's database", foreign, ErrNotSpool},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, ErrNotSpool},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Defaults()
			cfg.Dir = t.TempDir()
			tt.make(t, filepath.Join(cfg.Dir, dbName))
			s, err := Open(cfg)
			if err != nil { // what the refused start leaves behind does not make the file ours
				_, err = Open(cfg)
			}
			if !errors.Is(err, tt.error) || err == nil != (tt.error == nil) {
				t.Fatalf("error %v, want %v", err, tt.error)
			}
			if err != nil {
				return
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewerFormat(t *testing.T) {
	dir, _ := filled(t, 3)
	path := filepath.Join(dir, dbName)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(layout.Meta.Name()).Put(layout.KeyFormat, []byte{layout.Format + 1})
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	cfg := Defaults()
	cfg.Dir = dir
	if _, err := Open(cfg); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("open: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the newer spool was changed")
	}
}

func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that the wait for the lock takes no time
		r := newRig(t)
		start := time.Now()
		if _, err := Open(r.cfg); !errors.Is(err, ErrInUse) {
			t.Errorf("a second open: %v", err)
		}
		if waited := time.Since(start); waited < time.Second || waited > 5*time.Second {
			t.Errorf("gave up after %v", waited)
		}
		if _, err := Check(r.cfg.Dir); !errors.Is(err, ErrInUse) {
			t.Errorf("check: %v", err)
		}
	})
}

func TestModes(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Dir = filepath.Join(c.Dir, "made") })
	r.append(event("a", endpointA, "x"))
	r.reopen()
	info, err := os.Stat(r.cfg.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	entries, _ := os.ReadDir(r.cfg.Dir)
	for _, e := range entries {
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", e.Name(), info.Mode())
		}
	}
}
