package main

import (
	"encoding/json"
	"os"
)

// reportData is everything that one run found out. It names no machine and no path.
type reportData struct {
	Date   string  `json:"date"`
	Go     string  `json:"go"`
	System string  `json:"system"`
	CPUs   int     `json:"cpus"`
	Rounds int     `json:"rounds"`
	Quick  bool    `json:"quick"`
	Groups []group `json:"groups"`
}

// group is what one experiment found out.
type group struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	LeftOut string `json:"left_out,omitempty"` // why there is nothing
	Rows    []row  `json:"rows"`
}

// row is one measured quantity, with what it is held against.
type row struct {
	Name        string  `json:"name"`
	Unit        string  `json:"unit"`
	Value       spread  `json:"value"`
	Reference   *spread `json:"reference,omitempty"`
	ReferenceIs string  `json:"reference_is,omitempty"`
	Ratio       *spread `json:"ratio,omitempty"`
	Difference  *spread `json:"difference,omitempty"`
	Aim         *aim    `json:"aim,omitempty"`
}

// aim is what the ratio, the difference, or a value without either should reach.
type aim struct {
	AtLeast bool    `json:"at_least"` // else at most
	Of      string  `json:"of"`       // ratio, difference or value
	Is      float64 `json:"is"`
	Met     bool    `json:"met"` // by the median
}

// beside sets reference and ratio from the rounds of both.
func (r row) beside(what string, reference []float64) row {
	ref, ratio := over(reference), over(each(r.Value.Rounds, reference, func(a, b float64) float64 { return a / b }))
	r.ReferenceIs, r.Reference, r.Ratio = what, &ref, &ratio
	return r
}

// above sets reference and difference from the rounds of both.
func (r row) above(what string, reference []float64) row {
	ref, difference := over(reference), over(each(r.Value.Rounds, reference, func(a, b float64) float64 { return a - b }))
	r.ReferenceIs, r.Reference, r.Difference = what, &ref, &difference
	return r
}

func (r row) atLeast(x float64) row { return r.aimed(true, x) }
func (r row) atMost(x float64) row  { return r.aimed(false, x) }

// within sets an aim for the value of a row that has a comparison too.
func (r row) within(x float64) row {
	r.Aim = &aim{Of: "value", Is: x, Met: r.Value.Median <= x}
	return r
}

// aimed sets the aim of what the row is about: its comparison where it has one, else its value.
func (r row) aimed(atLeast bool, x float64) row {
	of, it := "value", r.Value
	switch {
	case r.Ratio != nil:
		of, it = "ratio", *r.Ratio
	case r.Difference != nil:
		of, it = "difference", *r.Difference
	}
	r.Aim = &aim{AtLeast: atLeast, Of: of, Is: x, Met: atLeast && it.Median >= x || !atLeast && it.Median <= x}
	return r
}

// writeJSON writes results for machines.
func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
