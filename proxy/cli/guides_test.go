package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postern/proxy/cli/guide"
	"postern/proxy/cli/term"
)

func printed(t *testing.T, line string) string {
	t.Helper()
	r := typed{args: strings.Fields(line)}.run(t)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("postern %s: exit code %d: %s", line, r.code, r.stderr)
	}
	return r.stdout
}

// complete asks bash what it would offer for these words, the last one being typed.
func complete(t *testing.T, script, dir string, words ...string) []string {
	t.Helper()
	var typed strings.Builder
	for _, word := range words {
		fmt.Fprintf(&typed, " %q", word)
	}
	ask := fmt.Sprintf("source %q\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_postern\nprintf '%%s\\n' \"${COMPREPLY[@]}\"\n", script, typed.String(), len(words)-1)
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", ask)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	offered := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(offered)
	return offered
}

func TestBashCompletes(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "postern.bash")
	write(t, script, printed(t, "completion bash"))
	write(t, filepath.Join(dir, "a file.yaml"), "")
	if err := os.Mkdir(filepath.Join(dir, "a directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{[]string{"postern", "ev"}, []string{"events"}},
		{[]string{"postern", "events", "s"}, []string{"show"}},
		{[]string{"postern", "dead-letters", "replay", "--dry"}, []string{"--dry-run"}},
		{[]string{"postern", "--config", "x", "dead-letters", "repl"}, []string{"replay"}},
		{[]string{"postern", "completion", ""}, []string{"--help", "bash", "fish", "zsh"}},
		{[]string{"postern", "verify", "--scheme", "st"}, []string{"standard", "stripe"}},
		{[]string{"postern", "verify", "--scheme", "=", "hu"}, []string{"hub"}},
		{[]string{"postern", "verify", "--scheme", "="}, []string{"hub", "standard", "stripe", "template"}},
		{[]string{"postern", "run", "--config", "a"}, []string{"a directory", "a file.yaml"}},
		{[]string{"postern", "run", "-c", "a f"}, []string{"a file.yaml"}},
		{[]string{"postern", "run", "--data", "a"}, []string{"a directory"}},
		{[]string{"postern", "config", "init", "a f"}, []string{"a file.yaml"}},
		{[]string{"postern", "send", "--to", "x"}, []string{""}},
	} {
		if got := complete(t, script, dir, c.words...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every shell is told of every command and flag, and what it is told is right by its own parser where that is there.
func TestEveryShellKnowsEverything(t *testing.T) {
	var all []string
	var walk func(c guide.Command)
	walk = func(c guide.Command) {
		all = append(all, c.Name)
		for _, f := range c.Flags {
			all = append(all, f.Name)
		}
		for _, child := range c.Commands {
			walk(child)
		}
	}
	root, err := (&session{out: term.New(io.Discard, os.LookupEnv), err: term.New(io.Discard, os.LookupEnv)}).described()
	if err != nil {
		t.Fatal(err)
	}
	walk(root)
	if len(all) < 100 {
		t.Fatalf("only %q", all)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text := printed(t, "completion "+shell)
		for _, word := range all {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not know %s", shell, word)
			}
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not on this machine: its completion is checked as text alone", shell)
			continue
		}
		script := filepath.Join(t.TempDir(), "completion")
		write(t, script, text)
		if out, err := exec.CommandContext(t.Context(), program, "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s does not parse it: %v\n%s", shell, err, out)
		}
	}
}

func TestFishCompletes(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Log("fish is not on this machine: see TestEveryShellKnowsEverything")
		return
	}
	home := t.TempDir()
	script := filepath.Join(home, "postern.fish")
	write(t, script, printed(t, "completion fish"))
	for line, want := range map[string]string{
		"postern ev": "events\tList, show, retry or delete events.\n", "postern verify --scheme hu": "hub\t", "postern dead-letters replay --dry": "--dry-run\t",
	} {
		cmd := exec.CommandContext(t.Context(), fish, "--no-config", "-c", "source "+script+"; complete -C "+fmt.Sprintf("%q", line))
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%q: %v, %q, want %q", line, err, out, want)
		}
	}
}

// A page that a formatter would misread: a line that begins with a request that there is not, a part that is not closed.
func TestManPage(t *testing.T) {
	page := printed(t, "man")
	requests := map[string]int{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") {
			requests[strings.Fields(line)[0]]++
		} else if strings.HasPrefix(line, "'") || strings.Contains(strings.NewReplacer(`\e`, "", `\-`, "", `\&`, "", `\(aq`, "", `\(en`, "", `\fB`, "", `\fI`, "", `\fR`, "").Replace(line), `\`) {
			t.Errorf("not escaped: %s", line)
		}
	}
	for name, n := range requests {
		if !slices.Contains([]string{".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".RI", ".RS", ".RE", ".nf", ".fi"}, name) {
			t.Errorf("%s, %d times, is no request of the macros for man pages", name, n)
		}
	}
	if requests[".RS"] != requests[".RE"] || requests[".nf"] != requests[".fi"] || requests[".TH"] != 1 {
		t.Errorf("%v", requests)
	}
	man, err := exec.LookPath("man")
	if err != nil {
		t.Log("man is not on this machine: the page is checked as text alone")
		return
	}
	cmd := exec.CommandContext(t.Context(), man, "--warnings", "-E", "UTF-8", "-l", "-")
	cmd.Stdin, cmd.Env = strings.NewReader(page), append(os.Environ(), "MANWIDTH=100", "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING=")
	var warnings strings.Builder
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 || !strings.Contains(string(out), "postern dead-letters replay") {
		t.Errorf("%v: %s%s", err, warnings.String(), out)
	}
}
