package guide

import (
	"fmt"
	"strings"
)

// Fish writes a completion with the sentence of each command and flag beside it.
func Fish(root Command) string {
	var paths, lines strings.Builder
	for _, c := range all(root, nil) {
		key := strings.Join(append([]string{root.Name}, c.path...), " ")
		if len(c.path) > 0 {
			fmt.Fprintf(&paths, "            case %s\n                set path \"$path $word\"\n", quoteFish(key))
		}
		at := fmt.Sprintf("complete -c %s -n %s", root.Name, quoteFish("__"+root.Name+"_at "+quoteFish(key)))
		for _, child := range c.Commands {
			fmt.Fprintf(&lines, "%s -a %s -d %s\n", at, child.Name, quoteFish(flat(child.Help)))
		}
		for _, f := range c.Flags {
			fmt.Fprintf(&lines, "%s%s -d %s\n", at, fishFlag(f), quoteFish(flat(f.Help)))
		}
		for _, a := range c.Arguments {
			switch kindOf(a.Name, a.Words) {
			case aWord:
				fmt.Fprintf(&lines, "%s -a %s\n", at, quoteFish(strings.Join(a.Words, " ")))
			case aFile:
				fmt.Fprintf(&lines, "%s -F\n", at)
			}
		}
	}
	return strings.NewReplacer("NAME", root.Name, "PATHS", paths.String()).Replace(fishHead) + lines.String()
}

// fishHead defines the condition under which a line below it counts: the words so far lead to that command.
const fishHead = `# fish completion for NAME: NAME completion fish > ~/.config/fish/completions/NAME.fish
function __NAME_at
    set -l path NAME
    for word in (commandline -opc)[2..-1]
        switch "$path $word"
PATHS        end
    end
    test "$path" = "$argv[1]"
end
complete -c NAME -f
`

func fishFlag(f Flag) string {
	out := " -l " + f.Name
	if f.Short != 0 {
		out += " -s " + string(f.Short)
	}
	if f.Value == "" {
		return out
	}
	switch kindOf(f.Value, f.Words) {
	case aWord:
		return out + " -x -a " + quoteFish(strings.Join(f.Words, " "))
	case aFile:
		return out + " -r -F"
	case aDirectory:
		return out + " -x -a '(__fish_complete_directories)'"
	}
	return out + " -x"
}

// quoteFish puts text into single quotes, within which fish knows \' and \\ alone.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
