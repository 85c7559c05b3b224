package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// method is said in front of every table: a number without it means nothing.
const method = `Every server (Postern, each reference) is a process of its own, on the same cores as the other two: the load generator
writes ready-made requests over kept connections and checks every answer; the receiver says 200 to everything and counts
event IDs. Subject and reference take turns; a ratio or a difference is taken within a round. A closed loop sends as soon
as it was answered; an open loop keeps its rate, and its latencies count from the time at which a request was meant to
leave. Shown are medians, and in brackets the lowest and the highest round.`

// writeTable prints the report for people.
func (d *reportData) writeTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "postern bench: %s, %d CPUs, %s, %s, rounds: %d\n\n%s\n", d.Date, d.CPUs, d.System, d.Go, d.Rounds, method)
	if d.Quick {
		b.WriteString("\nThis was a QUICK run: small sizes, short times. It shows that all of it works; measure without --quick.\n")
	}
	lines := [][]string{{"", "POSTERN", "REFERENCE", "RATIO", "AIM", ""}}
	for _, g := range d.Groups {
		for _, r := range g.Rows {
			lines = append(lines, r.cells())
		}
	}
	padded := align(lines)
	head, padded := padded[0], padded[1:]
	for _, g := range d.Groups {
		fmt.Fprintf(&b, "\n%s: %s\n", strings.ToUpper(g.Name), wrap(g.About, 120, len(g.Name)+len(": ")))
		if g.LeftOut != "" {
			fmt.Fprintf(&b, "  NOT MEASURED: %s\n", g.LeftOut)
			continue
		}
		b.WriteString(head + "\n" + strings.Join(padded[:len(g.Rows)], "\n") + "\n")
		padded = padded[len(g.Rows):]
	}
	b.WriteString("\n" + d.verdict() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// verdict counts the aims, and names those that were missed.
func (d *reportData) verdict() string {
	met, missed := 0, []string(nil)
	for _, g := range d.Groups {
		for _, r := range g.Rows {
			switch {
			case r.Aim == nil:
			case r.Aim.Met:
				met++
			default:
				missed = append(missed, g.Name+": "+r.Name)
			}
		}
	}
	text := fmt.Sprintf("Aims met: %d. Missed: %d", met, len(missed))
	if len(missed) > 0 {
		text += " (" + strings.Join(missed, "; ") + ")"
	}
	return text + "."
}

func (r row) cells() []string {
	reference := "-"
	if r.Reference != nil {
		reference = r.ReferenceIs + " " + quantity(*r.Reference, r.Unit)
	}
	bound, verdict := r.Aim.text(r.Unit)
	return []string{r.Name, quantity(r.Value, r.Unit), reference, r.comparison(), bound, verdict}
}

// comparison is the ratio, or the difference with its sign.
func (r row) comparison() string {
	switch {
	case r.Ratio != nil:
		return quantity(*r.Ratio, "")
	case r.Difference != nil:
		return "+ " + quantity(*r.Difference, r.Unit) // "+ -0.02 ms" where the reference was slower
	}
	return "-"
}

func (a *aim) text(unit string) (bound, verdict string) {
	if a == nil {
		return "-", ""
	}
	sign, verdict := "<=", "missed"
	if a.AtLeast {
		sign = ">="
	}
	if a.Met {
		verdict = "met"
	}
	switch a.Of {
	case "ratio":
		unit = ""
	case "difference":
		sign += " +"
	}
	return sign + " " + withUnit(number(a.Is), unit), verdict
}

// align pads the cells of all lines to the same columns.
func align(lines [][]string) []string {
	var width []int
	for _, cells := range lines {
		for i, cell := range cells {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, len(lines))
	for n, cells := range lines {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString("  " + cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		out[n] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// wrap breaks a text into lines of so many bytes, with two blanks in front of all but the first, which begins at column.
func wrap(text string, width, column int) string {
	var b strings.Builder
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && column+1+len(word) > width:
			b.WriteString("\n  ")
			column = 2
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// quantity prints a median and, where there is more than one round, the range.
func quantity(s spread, unit string) string {
	text := withUnit(number(s.Median), unit)
	if len(s.Rounds) > 1 {
		text += fmt.Sprintf(" (%s to %s)", number(s.Min), number(s.Max))
	}
	return text
}

func withUnit(text, unit string) string {
	if unit == "" || unit[0] == '/' {
		return text + unit
	}
	return text + " " + unit
}

// number prints three digits that mean something, or all before the point, in groups.
func number(x float64) string {
	switch size := math.Abs(x); {
	case size >= 1000:
		return grouped(strconv.FormatFloat(math.Round(x), 'f', 0, 64))
	case size >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case size > 0 && size < 0.1:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// grouped puts a comma before every three digits.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
