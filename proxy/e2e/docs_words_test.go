package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineCommand = regexp.MustCompile("(log )?`postern ([a-z][^`]*)`") // after "log" it is a message
	commandWord   = regexp.MustCompile(`^[a-z][a-z-]*$`)
	longFlag      = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	makeTarget    = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	link          = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
)

// Every command that a document names in passing is one that there is, with flags that it has.
func TestDocumentCommands(t *testing.T) {
	t.Parallel()
	help := map[string]string{}
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inlineCommand.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1) {
			if m[1] != "" {
				continue
			}
			shown, _, _ := strings.Cut(m[2], "|")
			var words []string
			for _, word := range strings.Fields(shown) {
				if !commandWord.MatchString(word) {
					break
				}
				words = append(words, word)
			}
			command := strings.Join(words, " ")
			if help[command] == "" {
				out, err := exec.CommandContext(t.Context(), binary, append(words, "--help")...).CombinedOutput()
				if err != nil {
					t.Errorf("%s: there is no `postern %s`: %s", filepath.Base(file), command, out)
				}
				help[command] = string(out) + " --help"
			}
			for _, flag := range longFlag.FindAllString(shown, -1) {
				if !strings.Contains(help[command], flag) {
					t.Errorf("%s: `postern %s` has no %s", filepath.Base(file), command, flag)
				}
			}
		}
	}
	if len(help) < 15 {
		t.Errorf("only %d commands were found", len(help))
	}
}

// Every target of make and every file that a document links to is there.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no `make %s`", filepath.Base(file), m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(file), m[1])
			content, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr != nil || err != nil && !info.IsDir() {
				t.Errorf("%s: the link to %s leads nowhere", filepath.Base(file), m[1])
			}
			if m[2] != "" && !strings.Contains(anchors(string(content)), "\n"+m[2]+"\n") {
				t.Errorf("%s: %s has no heading %s", filepath.Base(file), m[1], m[2])
			}
		}
	}
}

// anchors are those that headings get, one a line.
func anchors(text string) string {
	var b strings.Builder
	b.WriteString("\n")
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			kept := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			b.WriteString("#" + strings.ReplaceAll(kept, " ", "-") + "\n")
		}
	}
	return b.String()
}

// The documents' index has every document.
func TestDocumentIndex(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range documents(t) {
		if name := filepath.Base(file); filepath.Base(filepath.Dir(file)) == "docs" && name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}
