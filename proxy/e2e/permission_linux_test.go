package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that these tests run Postern as where they run as root themselves, whom no mode keeps out.
const nobody = 65534

// unprivileged makes a Postern with a spool of its own that runs as somebody whom modes keep out.
func unprivileged(t *testing.T) *postern {
	t.Helper()
	p := newPostern(t, calm)
	data := p.dataDir()
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		p.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for _, open := range []string{filepath.Dir(binary), filepath.Dir(p.dir), p.dir} {
			must(t, os.Chmod(open, 0o711))
		}
		must(t, os.Chown(filepath.Join(p.dir, "postern.yaml"), nobody, nobody))
		must(t, os.Chown(data, nobody, nobody))
	}
	return p
}

// A spool that may not be read or written is no crash and no loop: exit code 1, and a text that names it and what to do.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		take func(data string) error // away
		give func(data string) error // back
	}{
		"the directory may not be entered": {func(d string) error { return os.Chmod(d, 0) }, func(d string) error { return os.Chmod(d, 0o700) }},
		"the directory may not be written": {func(d string) error { return os.Chmod(d, 0o500) }, func(d string) error { return os.Chmod(d, 0o700) }},
		"the file may not be read":         {func(d string) error { return os.Chmod(d+"/spool.db", 0) }, func(d string) error { return os.Chmod(d+"/spool.db", 0o600) }},
		"the file may not be written":      {func(d string) error { return os.Chmod(d+"/spool.db", 0o400) }, func(d string) error { return os.Chmod(d+"/spool.db", 0o600) }},
		"the lock may not be opened":       {func(d string) error { return os.Chmod(d+"/postern.lock", 0) }, func(d string) error { return os.Chmod(d+"/postern.lock", 0o600) }},
		"the mark may not be written":      {func(d string) error { return os.Chmod(d+"/spool.clean", 0o400) }, func(d string) error { return os.Chmod(d+"/spool.clean", 0o600) }},
		"the mark may not even be read":    {func(d string) error { return os.Chmod(d+"/spool.clean", 0) }, func(d string) error { return os.Chmod(d+"/spool.clean", 0o600) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, nil)
			p := unprivileged(t)
			p.start()
			p.accept("POST", "/"+r.url("/"), "x")
			r.wait(1, patience)
			if code := p.stop(patience); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			must(t, c.take(p.dataDir()))
			before := len(p.log.String())
			code, text := failing(t, p, patience)
			text = text[before:]
			if code != 1 || !strings.Contains(text, "permission denied") || !strings.Contains(text, p.dataDir()) || !strings.Contains(text, "own") {
				t.Errorf("exit code %d: %s", code, text)
			}
			must(t, c.give(p.dataDir()))
			p.start()
			p.accept("POST", "/"+r.url("/"), "x")
			r.wait(2, patience)
		})
	}
}
