package guard

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestTokensAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("new\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &tokenFile{path: path, last: [][]byte{[]byte("first")}}
	if got := f.tokens(); !slices.EqualFunc(got, []string{"new", "old"}, func(a []byte, b string) bool { return string(a) == b }) {
		t.Errorf("tokens %q", got)
	}
	os.Remove(path)
	f.checked = time.Time{}
	if got := f.tokens(); len(got) != 2 {
		t.Errorf("after the file is gone: %q", got)
	}
	// A pipe without a writer would hold up whoever reads it, and with it every request.
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f.checked = time.Time{}
	if got := f.tokens(); len(got) != 2 {
		t.Errorf("with a pipe in its place: %q", got)
	}
}
