package guide

import (
	"fmt"
	"strings"
)

// Bash writes a completion that needs bash alone, without the package bash-completion.
func Bash(root Command) string {
	var commands, words, values strings.Builder
	for _, c := range all(root, nil) {
		key := strings.Join(append([]string{root.Name}, c.path...), " ")
		if len(c.path) > 0 {
			fmt.Fprintf(&commands, "      %s) path=\"$path $word\" ;;\n", quoteShell(key))
		}
		var offered []string
		for _, child := range c.Commands {
			offered = append(offered, child.Name)
		}
		for _, a := range c.Arguments {
			offered = append(offered, a.Words...)
		}
		for _, f := range c.Flags {
			offered = append(offered, "--"+f.Name)
			if f.Value != "" {
				fmt.Fprintf(&values, "    %s) %s ;;\n", bashPattern(key, f), bashOffer(kindOf(f.Value, f.Words), f.Words))
			}
		}
		fmt.Fprintf(&words, "    %s) words=%s%s ;;\n", quoteShell(key), quoteShell(strings.Join(offered, " ")), bashFiles(c.Arguments))
	}
	return strings.ReplaceAll(strings.NewReplacer("@COMMANDS@", commands.String(), "@WORDS@", words.String(), "@VALUES@", values.String()).Replace(bashScript), "NAME", root.Name)
}

// bashScript: the words before the cursor lead to a command; the word before may be a flag that wants a value.
const bashScript = `# bash completion for NAME: source <(NAME completion bash)
_NAME() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path=NAME words= files= word i
  # --flag=value arrives as three words.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$path $word" in
@COMMANDS@    esac
  done
  COMPREPLY=()
  case "$path $prev" in
@VALUES@  esac
  case "$path" in
@WORDS@  esac
  COMPREPLY=($(compgen -W "$words --help" -- "$cur"))
  if [[ -n $files && $cur != -* ]]; then _NAME_paths -f; fi
}
# Names of files may hold blanks.
_NAME_paths() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen "$1" -- "$cur"))
}
complete -F _NAME NAME
`

func bashPattern(key string, f Flag) string {
	pattern := quoteShell(key + " --" + f.Name)
	if f.Short != 0 {
		pattern += "|" + quoteShell(key+" -"+string(f.Short))
	}
	return pattern
}

func bashOffer(kind takes, words []string) string {
	switch kind {
	case aWord:
		return "COMPREPLY=($(compgen -W " + quoteShell(strings.Join(words, " ")) + " -- \"$cur\")); return"
	case aFile:
		return "_NAME_paths -f; return"
	case aDirectory:
		return "_NAME_paths -d; return"
	}
	return "return"
}

func bashFiles(arguments []Argument) string {
	for _, a := range arguments {
		if kindOf(a.Name, a.Words) == aFile {
			return " files=1"
		}
	}
	return ""
}

// quoteShell puts text into single quotes for bash and zsh.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
