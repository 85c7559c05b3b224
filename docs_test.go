package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that the threat model relies on is there, and every file that it and SECURITY.md lead to.
func TestThreatModelNamesWhatIsThere(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"SECURITY.md", "docs/threat-model.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1)
		if page != "SECURITY.md" && len(names) < 50 {
			t.Errorf("%s names %d tests", page, len(names))
		}
		for _, name := range names {
			if !strings.Contains(tests.String(), "\nfunc "+name[1]+"(") {
				t.Errorf("%s names %s, which is not there", page, name[1])
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s leads to %s: %v", page, link[1], err)
			}
		}
	}
}
