package guide

import (
	"fmt"
	"strings"
)

// Zsh writes a completion with the sentence of each command and flag beside it.
func Zsh(root Command) string {
	var commands, offers strings.Builder
	for _, c := range all(root, nil) {
		key := strings.Join(append([]string{root.Name}, c.path...), " ")
		if len(c.path) > 0 {
			fmt.Fprintf(&commands, "      %s) path=\"$path $word\"; at=$i ;;\n", quoteShell(key))
		}
		fmt.Fprintf(&offers, "    %s)\n", quoteShell(key))
		if len(c.Commands) > 0 {
			offers.WriteString("      commands=(\n")
			for _, child := range c.Commands {
				fmt.Fprintf(&offers, "        %s\n", quoteShell(child.Name+":"+flat(child.Help)))
			}
			offers.WriteString("      )\n")
		}
		offers.WriteString("      specs=(\n")
		for _, spec := range zshSpecs(c.Command) {
			fmt.Fprintf(&offers, "        %s\n", quoteShell(spec))
		}
		offers.WriteString("      )\n      ;;\n")
	}
	return strings.NewReplacer("NAME", root.Name, "COMMANDS", commands.String(), "OFFERS", offers.String()).Replace(zshScript)
}

// zshScript cuts the words that lead to the command off, so that _arguments sees what follows it alone.
const zshScript = `#compdef NAME
# zsh completion for NAME: a file _NAME in a directory of $fpath, or source <(NAME completion zsh)
_NAME() {
  local path=NAME word
  local -a commands specs
  integer i at=1
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    case "$path $word" in
COMMANDS    esac
  done
  case "$path" in
OFFERS  esac
  if (( $#commands )) && [[ ${words[CURRENT]} != -* ]] && (( at == CURRENT - 1 )); then
    _describe command commands
    return
  fi
  words=("${words[1]}" "${(@)words[at+1,-1]}")
  (( CURRENT = CURRENT - at + 1 ))
  _arguments $specs
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _NAME "$@"
else
  compdef _NAME NAME
fi
`

// zshSpecs are the arguments of _arguments.
func zshSpecs(c Command) []string {
	specs := []string{"(-h --help)--help[Show what a command does, with an example.]"}
	for _, f := range c.Flags {
		tail := "[" + zshText(f.Help) + "]"
		if f.Value != "" {
			tail += ":" + zshText(f.Value) + ":" + zshOffer(kindOf(f.Value, f.Words), f.Words)
		}
		specs = append(specs, "--"+f.Name+tail)
		if f.Short != 0 {
			specs = append(specs, "-"+string(f.Short)+tail)
		}
	}
	for i, a := range c.Arguments {
		place := fmt.Sprint(i + 1)
		if a.Many {
			place = "*"
		}
		specs = append(specs, place+":"+zshText(a.Name)+":"+zshOffer(kindOf(a.Name, a.Words), a.Words))
	}
	return specs
}

func zshOffer(kind takes, words []string) string {
	switch kind {
	case aWord:
		return "(" + strings.Join(words, " ") + ")"
	case aFile:
		return "_files"
	case aDirectory:
		return "_files -/"
	}
	return " "
}

// zshText escapes what _arguments gives a meaning.
func zshText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(flat(text))
}
