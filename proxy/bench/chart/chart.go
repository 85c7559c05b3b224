// Package chart draws panels of lines as one SVG picture that is readable on a dark and on a light page.
//
// It promises a picture that stands alone (no script, no font, no address of anything), the same bytes for the same
// data, an axis of quantities that begins at zero unless it is logarithmic, and the range of every point beside its
// median. It leaves out everything that a fixed layout does not need: it knows panels of lines over a logarithmic axis.
package chart

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Chart is a picture: a title, a line under it, and panels, two beside each other.
type Chart struct {
	Title, Note string
	Panels      []Panel
}

// Panel is one pair of axes. X is logarithmic, and labelled at every value that was measured.
type Panel struct {
	Title, X string
	LogY     bool
	Series   []Series
}

// Series is one line.
type Series struct {
	Name   string
	Points []Point // in order of X
}

// Point is a median with its range.
type Point struct{ X, Y, Min, Max float64 }

// ErrData is the error for data that cannot be drawn: a panel without points, or a value that a logarithm does not have.
var ErrData = errors.New("the data cannot be drawn")

func (p Panel) check() error {
	points := 0
	for _, s := range p.Series {
		for _, pt := range s.Points {
			points++
			for _, v := range []float64{pt.X, pt.Y, pt.Min, pt.Max} {
				if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || pt.X == 0 || p.LogY && v == 0 {
					return fmt.Errorf("%w: %s has the point %+v", ErrData, p.Title, pt)
				}
			}
		}
	}
	if points == 0 {
		return fmt.Errorf("%w: %s has no points", ErrData, p.Title)
	}
	return nil
}

// Sizes of the layout, in the picture's units.
const (
	margin      = 24
	head        = 74 // title and note
	panelWidth  = 450
	panelHeight = 310
	gap         = 28
)

// WriteSVG draws.
func (c Chart) WriteSVG(w io.Writer) error {
	for _, p := range c.Panels {
		if err := p.check(); err != nil {
			return err
		}
	}
	rows := (len(c.Panels) + 1) / 2
	width := 2*margin + 2*panelWidth + gap
	height := head + rows*(panelHeight+gap) + margin - gap
	d := &drawing{}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`, width, height, width, height, escape(c.Title))
	d.add("<style>%s</style>", style)
	d.add(`<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`, width-1, height-1)
	d.text("title", "start", margin, 36, c.Title)
	d.text("note", "start", margin, 58, c.Note)
	for i, p := range c.Panels {
		d.panel(p, float64(margin+i%2*(panelWidth+gap)), float64(head+i/2*(panelHeight+gap)))
	}
	d.add("</svg>")
	_, err := io.WriteString(w, d.b.String())
	return err
}

// style has the colours of both kinds of page. The page's own colour is drawn too, since a viewer may show a picture on
// a page of the other kind.
const style = `
:root{--page:#fff;--edge:#d0d7de;--text:#1f2328;--soft:#59636e;--grid:#e4e8ec;--s0:#0969da;--s1:#bc4c00;--s2:#1a7f37}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--edge:#30363d;--text:#e6edf3;--soft:#9198a1;--grid:#262c34;--s0:#58a6ff;--s1:#f0883e;--s2:#3fb950}}
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--soft)}
.page{fill:var(--page);stroke:var(--edge)}
.title{font-size:18px;font-weight:600;fill:var(--text)}
.panel{font-size:14px;font-weight:600;fill:var(--text)}
.key{fill:var(--text)}
.grid{stroke:var(--grid)}
.axis{stroke:var(--soft)}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.range{stroke-width:1.5;opacity:.6}
.c0{stroke:var(--s0)}.c1{stroke:var(--s1)}.c2{stroke:var(--s2)}
.d0{fill:var(--s0)}.d1{fill:var(--s1)}.d2{fill:var(--s2)}
`
