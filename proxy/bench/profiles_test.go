package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Both profiles of a load are in files of their own, and a profile that is refused fails the run instead of being one.
func TestProfilesOfALoad(t *testing.T) {
	off := false
	admin := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if off {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(r.URL.Path))
	})
	l := testLab(t, 1)
	p := &postern{admin: admin, profiles: l.profileNames()}
	t.Cleanup(p.client.CloseIdleConnections)
	ran := 0
	do := func() error { ran++; return nil }
	if err := p.profiled(do); err != nil || ran != 1 {
		t.Errorf("without profiles: %v, %d", err, ran)
	}
	l.profiles = t.TempDir()
	p.profiles = l.profileNames()
	for range 2 {
		if err := p.profiled(do); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(l.profiles, "*"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if want := []string{"test-01.allocs.pprof", "test-01.cpu.pprof", "test-02.allocs.pprof", "test-02.cpu.pprof"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%v, %v", files, err)
	}
	if text, err := os.ReadFile(filepath.Join(l.profiles, "test-01.cpu.pprof")); err != nil || string(text) != "/debug/pprof/profile" {
		t.Errorf("%s, %v", text, err)
	}
	broken := errors.New("broken")
	off = true
	if err := p.profiled(func() error { return broken }); !errors.Is(err, broken) || len(err.Error()) < len("broken\nprofile?seconds=3: status 404") {
		t.Errorf("%v", err)
	}
}
