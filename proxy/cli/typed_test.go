package cli

import (
	"io"
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
	leaves := parserForTest(t).Model.Leaves(false)
	if len(leaves) < 20 {
		t.Fatalf("only %d commands were found", len(leaves))
	}
	for _, leaf := range leaves {
		group, _, _ := strings.Cut(strings.TrimPrefix(leaf.FullPath(), "postern "), " ")
		if !strings.Contains(leaf.Detail, "Example:\n\n    postern "+group) && leaf.FullPath() != "postern dead-letters show" {
			t.Errorf("%s has no example", leaf.FullPath())
		}
		if leaf.Help == "" || !strings.HasSuffix(leaf.Help, ".") {
			t.Errorf("%s: help %q is no sentence", leaf.FullPath(), leaf.Help)
		}
	}
}
