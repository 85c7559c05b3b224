package e2e

import (
	"bytes"
	le "encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest/intime"
)

// failing starts a Postern that cannot start, and returns its exit code and what it said.
func failing(t *testing.T, p *postern, limit time.Duration) (int, string) {
	t.Helper()
	p.launch()
	code := p.waitExit(limit)
	text := p.log.String()
	if strings.Contains(text, "goroutine ") || strings.Contains(text, "panic") {
		t.Errorf("a stack trace:\n%s", text)
	}
	return code, text
}

func TestSpoolInUse(t *testing.T) {
	t.Parallel()
	p := startPostern(t, calm)
	second := newPostern(t, calm)
	os.RemoveAll(filepath.Join(second.dir, "data"))
	if err := os.Symlink(filepath.Join(p.dir, "data"), filepath.Join(second.dir, "data")); err != nil {
		t.Fatal(err)
	}
	intime.Since(t, 5*time.Second, "the refusal", func() {
		if code, text := failing(t, second, patience); code != 1 || !strings.Contains(text, "in use") {
			t.Errorf("exit code %d: %s", code, text)
		}
	})
	for _, command := range []string{"check", "compact", "salvage"} {
		_, stderr, code := p.run("spool", command, "--data", filepath.Join(p.dir, "data"))
		if code != 1 || !strings.Contains(stderr, "in use") {
			t.Errorf("spool %s on a live spool: exit code %d: %s", command, code, stderr)
		}
	}
}

// Which port it is, and how to choose another.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	p := startPostern(t, calm)
	taken, probes := strings.TrimPrefix(p.ingest, "http://"), ""
	for option, use := range map[string]func(*postern){
		"--listen":       func(second *postern) { second.ingest = p.ingest },
		"--admin-listen": func(second *postern) { second.admin = p.ingest },
		"probes.listen":  func(second *postern) { probes = "probes: { listen: \"" + taken + "\" }\n" },
	} {
		probes = ""
		second := newPostern(t, "")
		use(second)
		second.configure(calm + probes)
		if code, text := failing(t, second, patience); code != 1 || !strings.Contains(text, taken) || !strings.Contains(text, option) {
			t.Errorf("exit code %d: %s", code, text)
		}
	}
}

func TestDataDirectoryCannotBeUsed(t *testing.T) {
	t.Parallel()
	p := newPostern(t, calm)
	if err := os.WriteFile(filepath.Join(p.dir, "data"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := failing(t, p, patience); code != 1 || !strings.Contains(text, "data") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

func TestBadConfigurationExits2(t *testing.T) {
	t.Parallel()
	p := newPostern(t, "concurency: 3\n")
	code, text := failing(t, p, patience)
	if code != 2 || !strings.Contains(text, "postern.yaml:3") || !strings.Contains(text, "concurrency") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	p.accept("POST", "/"+r.url("/"), "x")
	files, err := os.ReadDir(filepath.Join(p.dir, "data"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		if info, _ := f.Info(); info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
}

// damage is one way in which a spool file goes bad: it gets the file and its page size. Kept tells whether the damaged
// file must be there afterwards.
var damage = map[string]struct {
	harm func(b []byte, page int) []byte
	kept string // yes, or maybe: the page may not have been in use
}{
	"meta pages zeroed": {func(b []byte, page int) []byte { clear(b[:2*page]); return b }, "yes"},
	"page 5 is FF": {func(b []byte, page int) []byte {
		for i := range page {
			b[5*page+i] = 0xff
		}
		return b
	}, "maybe"},
	"cut in the middle of the data": {func(b []byte, page int) []byte { return b[:bytes.LastIndex(b, []byte("event 500"))] }, "yes"},
	"page 2 over 3":                 {func(b []byte, page int) []byte { copy(b[3*page:4*page], b[2*page:3*page]); return b }, "maybe"},
	"empty":                         {func([]byte, int) []byte { return nil }, "yes"},
}

func TestDamagedSpool(t *testing.T) {
	t.Parallel()
	for name, d := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := freeAddr(t)
			p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 10000, base_delay: 200ms, max_delay: 1s }, "+patient+" }\n")
			flood(t, p, 1000, "/http://"+addr+"/")
			p.kill()
			file := filepath.Join(p.dir, "data", "spool.db")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, d.harm(b, int(le.LittleEndian.Uint32(b[24:]))), 0o600); err != nil {
				t.Fatal(err)
			}
			r := newReceiverOn(t, addr, nil, nil)
			p.start()
			id := p.accept("POST", "/"+r.url("/new"), "x")
			p.waitState(id, "delivered", patience)
			if log := p.log.String(); strings.Contains(log, "goroutine ") {
				t.Error("a stack trace in the log")
			}
			kept, _ := filepath.Glob(filepath.Join(p.dir, "data", "*.corrupt-*"))
			if d.kept == "yes" && len(kept) != 1 {
				t.Errorf("kept of the damaged file: %v", kept)
			}
			if len(kept) == 0 { // the page was a free one: then nothing may be missing
				r.wait(1001, patience)
			}
			if said := strings.Count(p.log.String(), "the spool's file was damaged"); said != len(kept) {
				t.Errorf("said %d times", said)
			}
		})
	}
}

// Damage that is met while running ends the process with a text, and the next start salvages: one restart, no loop.
func TestDamageWhileRunning(t *testing.T) {
	addr := freeAddr(t)
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 10000, base_delay: 200ms, max_delay: 1s }, "+patient+" }\n")
	flood(t, p, 500, "/http://"+addr+"/")
	file := filepath.Join(p.dir, "data", "spool.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	from := int64(2 * le.LittleEndian.Uint32(b[24:]))
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, len(b)-int(from)), from); err != nil {
		t.Fatal(err)
	}
	for range 20 { // whatever they are answered: something must look at the file
		if _, err := p.try("POST", "/http://"+addr+"/", "x"); err != nil {
			break
		}
	}
	if code := p.waitExit(patience); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if log := p.log.String(); strings.Contains(log, "goroutine ") || !strings.Contains(log, "damaged") {
		t.Errorf("the log does not say what happened, or shows a stack")
	}
	r := newReceiverOn(t, addr, nil, nil)
	p.start()
	p.waitState(p.accept("POST", "/"+r.url("/new"), "x"), "delivered", patience)
}

// What a copy that was killed half-way left behind is neither taken for the spool nor kept.
func TestLeftoverOfACompaction(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	id := p.accept("POST", "/"+r.url("/"), "x", "Postern-Delay: 1h")
	p.kill()
	leftover := filepath.Join(p.dataDir(), "spool.db.compact")
	if err := os.WriteFile(leftover, []byte("half of a copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.waitState(id, "pending", patience)
	p.api("POST", "events/"+id+"/retry", "", nil)
	r.wait(1, patience)
	if _, err := os.Stat(leftover); err == nil {
		t.Errorf("%s is still there", leftover)
	}
}

// A file that is whole and somebody else's is not ours to move away.
func TestFileOfAnotherProgram(t *testing.T) {
	t.Parallel()
	p := newPostern(t, calm)
	file := filepath.Join(p.dir, "data", "spool.db")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	other := []byte(strings.Repeat("somebody's notes\n", 4096))
	if err := os.WriteFile(file, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := failing(t, p, patience); code != 1 || !strings.Contains(text, "not a Postern spool") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if left, _ := os.ReadFile(file); !bytes.Equal(left, other) {
		t.Error("the file was touched")
	}
}

func TestOneBadRecord(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 10000, base_delay: 500ms, max_delay: 1s }, "+patient+" }\n")
	for i := range 100 {
		p.accept("POST", "/http://"+addr+"/", strings.Repeat("body", 50)+string(rune('A'+i%26))+strings.Repeat("tail", 50))
	}
	p.kill()
	file := filepath.Join(p.dir, "data", "spool.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	needle := "bodybodyK"
	if !strings.Contains(text, needle) {
		t.Fatal("the body is not in the file as it is")
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, needle, "bodybodykaputt!!"[:len(needle)], 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newReceiverOn(t, addr, nil, nil)
	p.start()
	r.wait(99, patience)
	if code := p.stop(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := len(r.byEvent()); n != 99 {
		t.Errorf("%d events delivered, want 99", n)
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--help"}, {"run", "--help"}, {"dead-letters", "replay", "--help"}} {
		out, err := exec.Command(binary, args...).CombinedOutput()
		if err != nil || len(out) == 0 {
			t.Errorf("postern %v: %v: %s", args, err, out)
		}
	}
}
