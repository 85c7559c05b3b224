package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSizeWatch(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a", 2_000_000)
	put("b", 1_000_000)
	if got, err := sizeOf(dir); err != nil || got != 3 {
		t.Errorf("%v MB, %v", got, err)
	}
	w := watchSize(dir)
	w.note(3, nil)
	w.note(1, nil)
	if w.peak() != 3 {
		t.Errorf("peak %v", w.peak())
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if _, err := sizeOf(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there has a size")
	}
}

func TestSyncTimes(t *testing.T) {
	got, err := syncTimes(t.TempDir(), 3, 2)
	if err != nil || got.P50 <= 0 || got.Max < got.P50 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseHeap(t *testing.T) {
	const page = "# HELP x\ngo_memstats_mallocs_total 1200\ngo_memstats_alloc_bytes_total 5e3\nother{a=\"b c\"} 7\n"
	h, err := parseHeap(strings.NewReader(page))
	if err != nil || h != (heap{1200, 5000}) {
		t.Errorf("%+v, %v", h, err)
	}
	if f := h.per(heap{200, 1000}, 100); f["objects"] != 10 || f["bytes"] != 40 {
		t.Errorf("%v", f)
	}
	if _, err := parseHeap(strings.NewReader("go_memstats_mallocs_total 1\n")); err == nil {
		t.Error("half of it is taken for all")
	}
}
