// Package guide writes what belongs beside a command line: completions for bash, zsh and fish, and the man page.
//
// It promises that all of them are made from one description, the one that the command line itself is parsed by, so
// that none can tell of a flag that there is not. It leaves out how that description is found (package cli) and words
// that only a running Postern knows, such as names of endpoints: a completion asks nobody.
package guide

import "strings"

// Command is one command with everything below it. The root is the program.
type Command struct {
	// Name is the last word of the command line, such as replay.
	Name string
	// Help is one sentence. Detail is what its --help says besides, with examples as indented lines.
	Help, Detail string
	// Flags are those of this command alone.
	Flags []Flag
	// Arguments are its positional ones, in order.
	Arguments []Argument
	Commands  []Command
}

// Flag is an option of a command.
type Flag struct {
	Name  string
	Short rune // zero for none
	Help  string
	// Value stands for what follows the flag, such as FILE; empty for a switch.
	Value string
	// Words are all values that it takes, where there are only some.
	Words []string
}

// Argument is a positional one.
type Argument struct {
	Name  string
	Help  string
	Words []string
	// Optional may be left out; Many may be repeated.
	Optional, Many bool
}

// takes is what a completion offers for a value.
type takes int

const (
	anything takes = iota // nothing can be offered
	aWord
	aFile
	aDirectory
)

// kindOf tells what to offer by the name that stands for the value.
func kindOf(value string, words []string) takes {
	switch {
	case len(words) > 0:
		return aWord
	case strings.Contains(strings.ToUpper(value), "FILE"):
		return aFile
	case strings.EqualFold(value, "DIR"):
		return aDirectory
	}
	return anything
}

// placed is a command with the words that lead to it.
type placed struct {
	Command
	path []string // without the program's name
}

// all lists a command and everything below it, parents first.
func all(c Command, path []string) []placed {
	out := []placed{{c, path}}
	for _, child := range c.Commands {
		out = append(out, all(child, append(path[:len(path):len(path)], child.Name))...)
	}
	return out
}

// flat puts a text on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
