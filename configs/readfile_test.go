package configs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func mkfifo(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A pipe into which nobody writes is refused wherever a file is named, and holds up nothing: a reload runs in the loop
// that SIGTERM goes through, too.
func TestPipesThatGiveNothing(t *testing.T) {
	for key, text := range map[string]string{
		"sign.secrets":                     at(`sign: { scheme: hub, secrets: ["file:pipe"] }`),
		"headers.set":                      at(`headers: { set: { X-Key: "file:pipe" } }`),
		"tls.ca_file":                      at("tls: { ca_file: pipe }"),
		"tls.cert_file":                    at("tls: { cert_file: pipe, key_file: pipe }"),
		"token_file":                       "token_file: pipe\n",
		"spool.encryption_key_files":       "spool: { encryption_key_files: [pipe] }\n",
		"the configuration file is a pipe": "",
	} {
		dir, o := t.TempDir(), Options{Getenv: env{}.get}
		o.Dir = dir
		mkfifo(t, dir, "pipe")
		if text == "" {
			o.Path = "pipe"
		} else {
			write(t, dir, "postern.yaml", text)
		}
		_, err := Load(o)
		if err == nil || !strings.Contains(err.Error(), "use an ordinary file") || text != "" && !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error %v, want one that names the key and says what to use", key, err)
		}
	}
}

// A shell's <(command) is a pipe with something in it: read once, it is as good as a file.
func TestPipesThatGiveSomething(t *testing.T) {
	dir := t.TempDir()
	mkfifo(t, dir, "pipe")
	go func() {
		if err := os.WriteFile(filepath.Join(dir, "pipe"), []byte("concurrency: 7\n"), 0); err != nil {
			t.Error(err)
		}
	}()
	hold, err := os.Open(filepath.Join(dir, "pipe")) // waits for the writer, and keeps what it wrote in the pipe
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	c, err := Load(Options{Dir: dir, Path: "pipe", Getenv: env{}.get})
	if err != nil || c.Concurrency != 7 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A pipe whose writer never ends is given up, with what to do instead.
func TestPipesWithoutAnEnd(t *testing.T) {
	t.Parallel() // it waits for pipeWait
	dir := t.TempDir()
	mkfifo(t, dir, "pipe")
	writer, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.WriteString("concurrency: 7\n"); err != nil {
		t.Fatal(err)
	}
	_, err = Load(Options{Dir: dir, Path: "pipe", Getenv: env{}.get})
	if err == nil || !strings.Contains(err.Error(), "not closed by its writer within 5s") || !strings.Contains(err.Error(), "into an ordinary file") {
		t.Errorf("error %v", err)
	}
}
