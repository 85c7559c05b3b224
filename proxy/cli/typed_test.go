package cli

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func parserForTest(t *testing.T) *kong.Kong {
	t.Helper()
	none := func(string) (string, bool) { return "", false }
	s := &session{Process: Process{Env: none}}
	k, err := newParser(s, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestReorder(t *testing.T) {
	model := parserForTest(t).Model
	for in, want := range map[string]string{
		"":                                    "",
		"run":                                 "run",
		"--config f":                          "--config f",
		"--config f --dev":                    "--config f --dev",
		"--config f spool check":              "spool check --config f",
		"-c f spool check --json":             "spool check --json -c f",
		"--config=f --dev run --hello":        "run --hello --config=f --dev",
		"--json status":                       "status --json",
		"--help events show":                  "events show --help",
		"--bogus status":                      "status --bogus",
		"--to a send -- -x":                   "send --to a -- -x",
		"status --json":                       "status --json",
		"--":                                  "--",
		"help":                                "--help",
		"help spool check":                    "spool check --help",
		"--version":                           "version",
		"- x":                                 "- x",
		"--config":                            "--config",
		"-d - send":                           "send -d -",
		"--endpoint p events --state failed":  "events --state failed --endpoint p",
		"--data d --listen :1 config show -h": "config show -h --data d --listen :1",
	} {
		if got := strings.Join(reorder(model, strings.Fields(in)), " "); got != want {
			t.Errorf("reorder(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"status", "status", 0}, {"stauts", "status", 1}, {"evens", "events", 1}, {"kitten", "sitting", 3}} {
		if got := edits(c.a, c.b); got != c.want || edits(c.b, c.a) != got {
			t.Errorf("edits(%q, %q) = %d, want %d both ways", c.a, c.b, got, c.want)
		}
	}
}

// TestEveryCommandHasAnExample holds the contract's promise for commands that are yet to come, too.
func TestEveryCommandHasAnExample(t *testing.T) {
	seen := 0
	var look func(*kong.Node)
	look = func(node *kong.Node) {
		for _, command := range node.Children {
			seen++
			group, _, _ := strings.Cut(strings.TrimPrefix(command.FullPath(), "postern "), " ")
			if !strings.Contains(command.Detail, "Example:\n\n    postern "+group) {
				t.Errorf("%s has no example", command.FullPath())
			}
			if command.Help == "" || !strings.HasSuffix(command.Help, ".") {
				t.Errorf("%s: help %q is no sentence", command.FullPath(), command.Help)
			}
			look(command)
		}
	}
	look(parserForTest(t).Model.Node)
	if seen < 25 {
		t.Errorf("only %d commands were found", seen)
	}
}

// plainCommands print no table: a word, a file, or one line for each argument.
var plainCommands = map[string]bool{
	"postern run": true, "postern healthcheck": true, "postern events retry": true, "postern events delete": true,
	"postern fleet serve": true, "postern sync migrate": true, "postern config init": true, "postern config check": true, "postern config show": true,
	"postern completion": true, "postern man": true,
}

// TestEveryTableComesAsJSON holds the contract's promise for commands that are yet to come, too.
func TestEveryTableComesAsJSON(t *testing.T) {
	for _, command := range parserForTest(t).Model.Leaves(true) {
		has := slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "json" })
		if name := command.FullPath(); has == plainCommands[name] {
			t.Errorf("%s: has --json: %v, prints no table: %v", name, has, plainCommands[name])
		}
	}
}

func TestNegativeValuesAreToldAsSuch(t *testing.T) {
	for _, line := range []string{"dead-letters replay --rate -1", "send https://x.example --delay -5s", "events list --limit -3"} {
		args := strings.Fields(line)
		_, err := parserForTest(t).Parse(args)
		parse, ok := errors.AsType[*kong.ParseError](err)
		if !ok {
			t.Fatalf("%s: %v", line, err)
		}
		if text, _ := explainParse(parse); !strings.Contains(text, "takes no negative value") || !strings.Contains(text, args[len(args)-1]) || strings.Contains(text, "try") {
			t.Errorf("%s: %s", line, text)
		}
	}
}
