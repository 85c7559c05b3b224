package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that these pages rely on is there, and every file that they lead to.
func TestPagesNameTestsThatAreThere(t *testing.T) {
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
	for page, least := range map[string]int{"SECURITY.md": 0, "docs/threat-model.md": 50, "docs/reliability.md": 80} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1)
		if len(names) < least {
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

// Each failure that docs/reliability.md lists has a test.
func TestEveryFailureHasATest(t *testing.T) {
	text, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Failures that others met")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (\w[^|]*) \| [^|]+ \| ([^|]*) \|$`).FindAllStringSubmatch(table, -1)
	if len(rows) < 48 {
		t.Errorf("only %d rows were found", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(row[2], "`Test") && row[1] != "" && row[2] != "tests" {
			t.Errorf("%s: no test is named", row[1])
		}
	}
}
