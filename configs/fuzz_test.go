package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever is in the file: Load returns, it names what is wrong, and what it accepts can be shown.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	for _, text := range []string{
		secretful, "&a [*a]", "x: &a { <<: *a }", "<<: [&a { <<: [*a, *a] }]", "endpoints: &e [*e]", "? ? x\n: y", "!!binary x: y",
		"- - - -", "a: |\n", "a: >-\n  x\n\n  y", "\x00", "%TAG ! x\n---\n", "listen: !x &y *z", "spool: &s\nspool: *s", "{{{", "*: *", "&", "? ", ": ", strings.Repeat("- ", 1000),
	} {
		f.Add(text)
	}
	f.Add("listen: 127.0.0.1:1\nadmin: &a { listen: unix:x, <<: { pprof: true } }\nprobes: { listen: ':1' }\n")
	f.Add("<<: { listen: 127.0.0.1:1, admin: { listen: 127.0.0.1:2 } }\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Options{Dir: dir, Getenv: env{"SET": "secret"}.get}.load("fuzz.yaml", []byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if line == "" {
					t.Errorf("an empty line in the error %q", err)
				}
			}
			return
		}
		for _, face := range []face{ingestFace, adminFace} {
			looked, r := Defaults(), newReader("fuzz.yaml", dir, env{}.get)
			looked.glance(r, []byte(text), face)
			got, _ := face.of(looked, Options{})
			if want, _ := face.of(c, Options{}); len(r.problems) > 0 != c.Blank || got.Address != want.Address {
				t.Errorf("a glance finds %q, Postern listens at %q: %v", got.Address, want.Address, join(r.problems))
			}
		}
		if len(Show(c)) == 0 {
			t.Error("what was accepted cannot be shown")
		}
	})
}

// Merge keys that multiply, and aliases that go round in circles, end in an error and not in an endless loop.
func TestMergeBombs(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("x0: &x0 { a: b }\n")
	for i := range 15 {
		name := string(rune('a' + i))
		before := "x0"
		if i > 0 {
			before = string(rune('a' + i - 1))
		}
		bomb.WriteString("x" + name + ": &" + name + " { <<: [" + strings.Repeat("*"+before+", ", 9) + "*" + before + "] }\n")
	}
	bomb.WriteString("spool: *o\n")
	for name, text := range map[string]string{
		"wide": bomb.String(), "itself": "spool: &a { <<: *a }", "itself, doubled": "spool: &a { <<: [*a, *a] }",
	} {
		if _, err := loadText(t, text, nil); err == nil || !strings.Contains(err.Error(), "merge keys (<<) bring in too much") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
