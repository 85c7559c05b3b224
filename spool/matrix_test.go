package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// What TestRandomDamage tries: the same ones each time, and others by hand.
var (
	damageSeeds = flag.Int("damage.seeds", 2000, "how many random damages to try")
	damageFrom  = flag.Uint64("damage.from", 1, "the seed of the first one")
)

// specimen is a spool file to be damaged, as a kill leaves it, and how many events wait in it. It has pages of every type.
func specimen(t *testing.T, n int) (file []byte, waiting idSet) {
	t.Helper()
	waiting = make(idSet)
	cfg := Defaults()
	cfg.Dir, cfg.MaxBytes = t.TempDir(), 32*mib
	r := &rig{t: t, cfg: cfg}
	r.open()
	r.store.cur.db.NoSync = true
	for i := range n {
		r.append(event(fmt.Sprint(i), endpointA, strings.Repeat("x", []int{300, 300, 300, 300, 20_000}[i%5])))
	}
	for i, l := range r.lease(endpointA, n) {
		switch {
		case i%3 == 0:
			r.finish(l, delivered(l))
		case i%7 == 0:
			r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
			waiting[l.Event.ID] = true
		default:
			r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictRetry, NextAttempt: time.Now()})
			waiting[l.Event.ID] = true
		}
	}
	r.close()
	file, err := os.ReadFile(filepath.Join(cfg.Dir, dbName))
	r.must(err)
	return file, waiting
}

// planted makes a spool's directory with this file, as a kill leaves it.
func planted(t *testing.T, file []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string][]byte{dbName: file, cleanName: make([]byte, 16)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pageTypes lists the pages of each type. Overflow pages carry none: they belong to the page before.
func pageTypes(file []byte) map[string][]int {
	pages := map[string][]int{}
	for i := 0; i < len(file)/pageSize; i++ {
		p := page(file, i)
		name, known := map[uint16]string{1: "branch", 2: "leaf", 4: "meta", 16: "freelist"}[binary.LittleEndian.Uint16(p[8:])]
		if !known || binary.LittleEndian.Uint64(p) != uint64(i) {
			continue
		}
		pages[name] = append(pages[name], i)
		for over := binary.LittleEndian.Uint32(p[12:]); over > 0 && name != "freelist"; over-- {
			i++
			pages["overflow"] = append(pages["overflow"], i)
		}
	}
	return pages
}

// Each type of page overwritten: with nothing, with ones, with noise, and with another page.
func TestEachPageOverwritten(t *testing.T) {
	file, waiting := specimen(t, 150)
	rnd := rand.New(rand.NewPCG(1, 1))
	fills := map[string]func(p []byte){
		"zeros": func(p []byte) { clear(p) },
		"ones":  func(p []byte) { copy(p, bytes.Repeat([]byte{0xff}, len(p))) },
		"noise": func(p []byte) {
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
		},
		"another page": func(p []byte) { copy(p, page(file, 4)) },
		"its header":   func(p []byte) { copy(p[:16], bytes.Repeat([]byte{0x55}, 16)) },
	}
	types := pageTypes(file)
	for _, name := range []string{"meta", "freelist", "branch", "leaf", "overflow"} {
		if len(types[name]) == 0 {
			t.Fatalf("the file has no page of the type %s: %v", name, types)
		}
		chosen := types[name]
		rnd.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		for _, n := range chosen[:min(len(chosen), 4)] {
			for how, fill := range fills {
				harmed := bytes.Clone(file)
				fill(page(harmed, n))
				t.Run(fmt.Sprintf("%s %d with %s", name, n, how), func(t *testing.T) {
					t.Parallel()
					useAfterDamage(t, planted(t, harmed), waiting, 20, 400)
				})
			}
		}
	}
}

// Cut at the border of every page, and beside it.
func TestCutAnywhere(t *testing.T) {
	file, waiting := specimen(t, 40)
	for size := pageSize; size < len(file); size += pageSize {
		for _, n := range []int{size, size - 1, size + 100} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				useAfterDamage(t, planted(t, file[:n]), waiting, 0, 0)
			})
		}
	}
}

// Meta pages that are whole and not this file's last two.
func TestMixedMetaPages(t *testing.T) {
	file, waiting := specimen(t, 100)
	other, _ := specimen(t, 10)
	metas := func(f []byte) []byte { return f[:2*pageSize] }
	tests := map[string]func(f []byte){
		"swapped":               func(f []byte) { copy(metas(f), append(bytes.Clone(page(file, 1)), page(file, 0)...)) },
		"the first one twice":   func(f []byte) { copy(page(f, 1), page(file, 0)) },
		"the second one twice":  func(f []byte) { copy(page(f, 0), page(file, 1)) },
		"both of another file":  func(f []byte) { copy(metas(f), metas(other)) },
		"the first of another":  func(f []byte) { copy(page(f, 0), page(other, 0)) },
		"the second of another": func(f []byte) { copy(page(f, 1), page(other, 1)) },
		"neither is valid, and both lead to a root": func(f []byte) {
			f[40] ^= 1 // the checksum no longer holds
			f[pageSize+40] ^= 1
		},
		"behind the pages of data": func(f []byte) { copy(page(f, 2), page(file, 0)) },
	}
	for name, mix := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmed := bytes.Clone(file)
			mix(harmed)
			least := 0
			if strings.HasPrefix(name, "neither") || name == "swapped" {
				least = 100
			}
			useAfterDamage(t, planted(t, harmed), waiting, least, 0)
		})
	}
}

// What is no file is refused, and what it leads to stays as it is.
func TestSpoolFileIsNoFile(t *testing.T) {
	file, _ := specimen(t, 10)
	elsewhere := filepath.Join(planted(t, file), dbName)
	tests := map[string]func(path string) error{
		"a link to a spool":   func(path string) error { return os.Symlink(elsewhere, path) },
		"a link to nothing":   func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "nothing"), path) },
		"a link to itself":    func(path string) error { return os.Symlink(path, path) },
		"a link to a device":  func(path string) error { return os.Symlink(os.DevNull, path) },
		"a directory, filled": func(path string) error { return os.MkdirAll(filepath.Join(path, "below"), 0o700) },
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Defaults()
			cfg.Dir = t.TempDir()
			if err := make(filepath.Join(cfg.Dir, dbName)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if s, err := Open(cfg); !errors.Is(err, ErrNotSpool) {
					t.Fatalf("open: %v, %v", s, err)
				}
			}
			for what, call := range map[string]func(string) error{
				"check":   func(dir string) error { _, err := Check(dir); return err },
				"salvage": func(dir string) error { _, err := Salvage(dir); return err },
				"compact": func(dir string) error { _, _, err := Compact(dir, nil); return err },
			} {
				if err := call(cfg.Dir); err == nil {
					t.Errorf("%s took it", what)
				}
			}
		})
	}
	if after, _ := os.ReadFile(elsewhere); !bytes.Equal(after, file) {
		t.Error("the file that a link led to was changed")
	}
}

// A spool without a format that any version wrote is no spool; a format that is no single byte neither.
func TestFormatsThatNeverWere(t *testing.T) {
	for _, format := range [][]byte{{0}, {}, {1, 0}} {
		file, _ := specimen(t, 3)
		dir := planted(t, file)
		db, err := bolt.Open(filepath.Join(dir, dbName), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket(layout.Meta.Name()).Put(layout.KeyFormat, format) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		cfg := Defaults()
		cfg.Dir = dir
		if s, err := Open(cfg); !errors.Is(err, ErrNotSpool) {
			t.Errorf("format %v: %v, %v", format, s, err)
		}
	}
}

// A flipped bit in the name of a bucket leaves a sound database in which a part of the spool is missing.
func TestDamagedNameOfABucket(t *testing.T) {
	file, waiting := specimen(t, 50)
	for b := range layout.NumBuckets {
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			dir := planted(t, file)
			db, err := bolt.Open(filepath.Join(dir, dbName), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error {
				from := tx.Bucket(b.Name())
				name := bytes.Clone(b.Name())
				name[len(name)-1] ^= 0x10
				to, err := tx.CreateBucket(name)
				if err != nil {
					return err
				}
				return errors.Join(from.ForEach(to.Put), tx.DeleteBucket(b.Name()))
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			useAfterDamage(t, dir, waiting, 80, 100)
		})
	}
}

// childEnv makes TestRandomDamage the child that does the work.
const childEnv = "POSTERN_TEST_DAMAGE"

// TestRandomDamage flips bits and overwrites pieces at random, and uses the spool afterwards. It runs in a child, since a
// panic in one of bbolt's goroutines would take everything along; the file "seed" then tells which one it was.
func TestRandomDamage(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(childEnv); dir != "" {
		randomDamage(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRandomDamage$", "-test.timeout=10m", "-test.v", fmt.Sprint("-damage.seeds=", *damageSeeds), fmt.Sprint("-damage.from=", *damageFrom))
	// In memory where there is a place for that: thousands of syncs prove nothing here.
	cmd.Env = append(os.Environ(), childEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		cmd.Env = append(cmd.Env, "TMPDIR=/dev/shm")
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestRandomDamage") {
		at, _ := os.ReadFile(filepath.Join(dir, "seed"))
		t.Fatalf("at seed %s: %v\n%s", at, err, out)
	}
}

func randomDamage(t *testing.T, dir string) {
	const all = 60 // a delivered one may come back, where what was lost is that it was delivered
	file, waiting := specimen(t, all)
	for n := range *damageSeeds {
		seed := *damageFrom + uint64(n)
		if err := os.WriteFile(filepath.Join(dir, "seed"), fmt.Append(nil, seed), 0o600); err != nil {
			t.Fatal(err)
		}
		harmed := bytes.Clone(file)
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 1 + rnd.IntN(12) {
			at := rnd.IntN(len(harmed))
			switch rnd.IntN(4) {
			case 0: // within the head of a page
				harmed[at/pageSize*pageSize+rnd.IntN(64)] ^= 1 << rnd.IntN(8)
			case 1:
				piece := harmed[at:min(len(harmed), at+rnd.IntN(3000))]
				copy(piece, harmed[rnd.IntN(len(harmed)-len(piece)):])
			default:
				harmed[at] ^= 1 << rnd.IntN(8)
			}
		}
		if rnd.IntN(10) == 0 {
			harmed = harmed[:rnd.IntN(len(harmed))]
		}
		if problem := survives(t, harmed, len(waiting), all); problem != "" {
			// bbolt lays out no two files alike, so that the seed alone does not bring it back.
			name := filepath.Join(os.TempDir(), fmt.Sprintf("postern-damage-%d.db", seed))
			t.Fatalf("seed %d: %s\nthe damaged file is kept as %s (%v)", seed, problem, name, os.WriteFile(name, harmed, 0o600))
		}
	}
}

// survives opens a damaged spool, works in it, opens it again and checks it. It returns what went wrong.
func survives(t *testing.T, harmed []byte, waiting, most int) string {
	cfg := Defaults()
	cfg.Dir, cfg.MaxBytes = planted(t, harmed), 32*mib
	defer os.RemoveAll(cfg.Dir) // thousands of them would fill the place
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	s, err := Open(cfg)
	if err != nil {
		// What looks like a newer format, or a foreign file, is left alone, and says so.
		if errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrNotSpool) {
			return ""
		}
		return fmt.Sprintf("open: %v", err)
	}
	st := s.Stats()
	if got := int(st.Pending + st.Failed + st.DeadLetter); got > most || got < waiting && (st.SalvageLost+st.SetAside == 0 || log.Len() == 0) {
		return fmt.Sprintf("%d events, %d said to be lost, %d set aside: %d waited, of %d\nlog: %s", got, st.SalvageLost, st.SetAside, waiting, most, log.String())
	}
	if _, err := s.Append(t.Context(), event("new", endpointA, "x")); err != nil && !errors.Is(err, ErrUnwritable) {
		return fmt.Sprintf("append: %v", err)
	}
	leases, _, err := s.Lease(endpointA, time.Now().Add(time.Hour), 1000, 1<<30)
	if err != nil && !errors.Is(err, errDamaged) {
		return fmt.Sprintf("lease: %v", err)
	}
	for _, l := range leases {
		s.Finish(l, Result{Attempt: attempt(l, 200), Verdict: VerdictDelivered})
	}
	damaged := s.store.damaged.Load()
	err = s.Close(t.Context())
	if damaged || err != nil {
		// Met while it ran: the next start salvages.
		if s, err = Open(cfg); err != nil {
			return fmt.Sprintf("open after damage was met: %v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			return fmt.Sprintf("close: %v", err)
		}
	}
	report, err := Check(cfg.Dir)
	if err == nil && len(report.Problems) > 0 {
		// A record that nobody read yet, or that was set aside: a salvage puts that right.
		if _, err = Salvage(cfg.Dir); err == nil {
			report, err = Check(cfg.Dir)
		}
	}
	if err != nil || len(report.Problems) > 0 {
		return fmt.Sprintf("check: %v, %q\nlog: %s", err, report.Problems, log.String())
	}
	return ""
}
