// Package term writes for people: aligned tables, colour, ages, sizes and progress.
//
// It promises that the same call reads well on a terminal and in a pipe: colour and redrawing happen on a terminal
// only, never where NO_COLOR is set, and text that came from outside cannot steer the terminal. Whoever
// takes the whole terminal gives it back as it was. It leaves out editing lines and anything that scrolls.
package term

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Writer is a place to write for a person, with what is known about it.
type Writer struct {
	io.Writer
	// TTY tells that a person watches: lines may be redrawn.
	TTY bool
	// Color tells that colour codes are welcome.
	Color bool
	// Width is the number of columns; 0 where there is no terminal and nothing needs to be cut.
	Width int
}

// New looks at w and at the environment (NO_COLOR, TERM, COLUMNS).
func New(w io.Writer, env func(string) (string, bool)) *Writer {
	out := &Writer{Writer: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return out
	}
	kind, _ := env("TERM")
	out.TTY = kind != "dumb"
	// The convention of no-color.org: set and not empty, whatever the value.
	noColor, _ := env("NO_COLOR")
	out.Color = out.TTY && noColor == ""
	out.Width = width(f, env)
	return out
}

func width(f *os.File, env func(string) (string, bool)) int {
	if columns, ok := env("COLUMNS"); ok {
		if n, err := strconv.Atoi(columns); err == nil && n > 0 {
			return n
		}
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return 80
}

// Color is one of the few colours that are readable on light and on dark ground.
type Color string

// The colours, by what they say.
const (
	Plain  Color = ""
	Good   Color = "32" // green
	Warn   Color = "33" // yellow
	Bad    Color = "31" // red
	Faint  Color = "2"
	Strong Color = "1"
)

// Paint colours s where colour is welcome.
func (w *Writer) Paint(c Color, s string) string {
	if !w.Color || c == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// Clean replaces what could steer a terminal or break a line. Endpoint names, error texts and receivers' answers pass
// through it before a person sees them.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return ' '
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}

// IsTerminal tells whether somebody sits at the other end of r.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// CleanText is Clean for text of several lines: line ends and tabs stay.
func CleanText(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j, part := range parts {
			parts[j] = Clean(part)
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}
