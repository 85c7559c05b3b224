package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// reorder moves flags that were typed before the command behind it, so that `postern --config FILE spool check` means
// the same as `postern spool check --config FILE`. Flags belong to single commands in kong, since two commands may use
// one name for different things.
//
// It also understands the two spellings that people bring from elsewhere: `help COMMAND` and `--version`.
func reorder(model *kong.Application, args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	n := 0
	for n < len(args) && strings.HasPrefix(args[n], "-") && args[n] != "-" && args[n] != "--" {
		if takesValue(model.Node, args[n]) {
			n++
		}
		n++
	}
	if n >= len(args) || args[n] == "--" {
		return args // no command: they are run's
	}
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	return slices.Concat(args[n:end], args[:n], args[end:])
}

// takesValue tells whether the next argument belongs to this flag, in whichever command it is one.
func takesValue(node *kong.Node, arg string) bool {
	name, long := strings.CutPrefix(arg, "--")
	for _, flag := range node.Flags {
		if long && flag.Name == name || !long && arg == "-"+string(flag.Short) {
			return !flag.IsBool()
		}
	}
	return slices.ContainsFunc(node.Children, func(child *kong.Node) bool { return takesValue(child, arg) })
}

// explainParse words what kong found wrong, and names the command whose help says more.
func explainParse(parse *kong.ParseError) (text, command string) {
	text, command = plainly(parse.Error()), "postern"
	last := lastCommand(parse.Context)
	if last == nil {
		return text, command
	}
	command = last.FullPath()
	if m := noArgument.FindStringSubmatch(text); m != nil {
		return missing(m[1], last), command
	}
	word, unexpected := strings.CutPrefix(text, "unexpected argument ")
	if !unexpected || strings.Contains(text, "did you mean") {
		return text, command
	}
	// A default command takes whatever is no other command's name: what was meant may be one of its siblings.
	if last.Parent != nil && last.Parent.DefaultCmd == last {
		text, command = fmt.Sprintf("there is no command %q", word), last.Parent.FullPath()
		if near := nearest(word, commandNames(last.Parent)); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
	}
	return text, command
}

// lastCommand is how far the command was understood; flags and arguments behind it are no commands.
func lastCommand(ctx *kong.Context) *kong.Node {
	if ctx == nil {
		return nil
	}
	for _, step := range slices.Backward(ctx.Path) {
		if node := step.Node(); node != nil {
			return node
		}
	}
	return nil
}

// missing names an argument that was not given, with what it may be.
func missing(name string, command *kong.Node) string {
	for _, arg := range command.Positional {
		if arg.Name == name {
			return fmt.Sprintf("<%s> is missing: %s", name, strings.TrimSuffix(arg.Help, "."))
		}
	}
	return fmt.Sprintf("<%s> is missing", name)
}

var (
	noArgument = regexp.MustCompile(`^expected "<([\w-]+)>(?: \.\.\.)?( <.*)?"$`)
	noValue    = regexp.MustCompile(`^(--?[\w-]+): expected \w+ value but got "EOL" \(<EOL>\)$`)
	negative   = regexp.MustCompile(`^(--[\w-]+): .*"(-\d[^"]*)" \(short flag\)`)
	wrongValue = regexp.MustCompile(`^(--?[\w-]+): expected (?:a valid \d+ bit )?(\w+)(?: value)? but got (.*)$`)
)

// kinds are the words for what a flag takes.
var kinds = map[string]string{"int": "a whole number", "float": "a number", "duration": "a duration such as 90s or 1h30m"}

// plainly says in words what kong says in its own terms.
func plainly(text string) string {
	if m := noValue.FindStringSubmatch(text); m != nil {
		return m[1] + " needs a value after it"
	}
	if m := negative.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s takes no negative value, and %s is one; write it without the sign", m[1], m[2])
	}
	if m := wrongValue.FindStringSubmatch(text); m != nil && kinds[m[2]] != "" {
		got, _, _ := strings.Cut(m[3], ": time: ")
		return fmt.Sprintf("%s takes %s, not %s", m[1], kinds[m[2]], got)
	}
	return text
}

func commandNames(parent *kong.Node) (names []string) {
	for _, c := range parent.Children {
		names = append(names, c.Name)
	}
	return names
}

// nearest is the name that word begins, or that differs from it by no more than a slip; empty where there is none.
func nearest(word string, names []string) string {
	best, distance := "", max(1, len(word)/3)+1
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			return name
		}
		if d := edits(word, name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours between a and b (optimal string
// alignment).
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
