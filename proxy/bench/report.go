package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// reportData is everything that one run found out. It names no machine and no path.
type reportData struct {
	Date   string `json:"date"`
	Go     string `json:"go"`
	System string `json:"system"`
	CPUs   int    `json:"cpus"`
	Rounds int    `json:"rounds"`
	Short  bool   `json:"short"`
	Rows   []row  `json:"rows"`
}

// row is one measured quantity, with what it is held against.
type row struct {
	Name        string  `json:"name"`
	Unit        string  `json:"unit"`
	Value       spread  `json:"value"`
	Reference   *spread `json:"reference,omitempty"`
	ReferenceIs string  `json:"reference_is,omitempty"`
	Ratio       *spread `json:"ratio,omitempty"`
	Aim         *aim    `json:"aim,omitempty"`
	What        string  `json:"what"`
}

// aim is what the ratio, or a value without one, should reach.
type aim struct {
	AtLeast bool    `json:"at_least"` // else at most
	Of      string  `json:"of"`       // ratio or value
	Is      float64 `json:"is"`
	Met     bool    `json:"met"` // by the median
}

// beside sets reference and ratio from the rounds of both.
func (r row) beside(what string, reference []float64) row {
	ref, ratio := over(reference), over(ratios(r.Value.Rounds, reference))
	r.ReferenceIs, r.Reference, r.Ratio = what, &ref, &ratio
	return r
}

func (r row) ratioAtLeast(x float64) row {
	r.Aim = &aim{AtLeast: true, Of: "ratio", Is: x, Met: r.Ratio.Median >= x}
	return r
}

func (r row) atLeast(x float64) row {
	r.Aim = &aim{AtLeast: true, Of: "value", Is: x, Met: r.Value.Median >= x}
	return r
}

func (r row) atMost(x float64) row {
	r.Aim = &aim{Of: "value", Is: x, Met: r.Value.Median <= x}
	return r
}

func (l *lab) add(rows ...row) {
	l.report.Rows = append(l.report.Rows, rows...)
	for _, r := range rows {
		l.say("  %s: %s %s", r.Name, quantity(r.Value, r.Unit), r.ratioText())
	}
}

// writeTable prints the report for people. The median comes first, the range of the rounds behind it.
func (d *reportData) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d CPUs, %s, %s. Median of %d rounds (lowest to highest); reference and subject in turns.\n",
		d.Date, d.CPUs, d.System, d.Go, d.Rounds)
	if d.Short {
		fmt.Fprintln(w, "A short run: a tenth of all sizes and times. Measure without -short.")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tPOSTERN\tREFERENCE\tRATIO\tAIM\tWHAT WAS MEASURED")
	for _, r := range d.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, quantity(r.Value, r.Unit), r.referenceText(), r.ratioText(), r.Aim.text(r.Unit), r.What)
	}
	return t.Flush()
}

func (r row) referenceText() string {
	if r.Reference == nil {
		return "-"
	}
	return r.ReferenceIs + " " + quantity(*r.Reference, r.Unit)
}

func (r row) ratioText() string {
	if r.Ratio == nil {
		return "-"
	}
	return quantity(*r.Ratio, "")
}

func (a *aim) text(unit string) string {
	if a == nil {
		return "-"
	}
	sign, verdict := "<=", "missed"
	if a.AtLeast {
		sign = ">="
	}
	if a.Met {
		verdict = "met"
	}
	if a.Of == "ratio" {
		unit = ""
	}
	return fmt.Sprintf("%s %s, %s", sign, withUnit(number(a.Is), unit), verdict)
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

func (d *reportData) writeJSON(file string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
