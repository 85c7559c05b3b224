package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// drawing collects the picture's elements.
type drawing struct{ b strings.Builder }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drawing) text(class, anchor string, x, y float64, text string) {
	d.add(`<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, coordinate(x), coordinate(y), escape(text))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2))
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes everything
	return b.String()
}

// coordinate is exact enough to look at, and short.
func coordinate(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// Where the axes are within a panel.
const (
	left, right = 62, 12
	top, bottom = 58, 44
)

// panel draws one with its upper left corner at x, y.
func (d *drawing) panel(p Panel, x, y float64) {
	sx := newXScale(p, x+left+14, x+panelWidth-right-14)
	sy := newYScale(p, y+panelHeight-bottom, y+top)
	d.text("panel", "start", x, y+14, p.Title)
	d.keys(p, x, y+36)
	for _, v := range sy.ticks {
		d.line("grid", x+left, sy.at(v), x+panelWidth-right, sy.at(v))
		d.text("tick", "end", x+left-8, sy.at(v)+4, Short(v))
	}
	for _, v := range sx.ticks {
		d.line("axis", sx.at(v), y+panelHeight-bottom, sx.at(v), y+panelHeight-bottom+5)
		d.text("tick", "middle", sx.at(v), y+panelHeight-bottom+19, Short(v))
	}
	d.line("axis", x+left, y+panelHeight-bottom, x+panelWidth-right, y+panelHeight-bottom)
	d.text("tick", "middle", x+left+(panelWidth-left-right)/2, y+panelHeight-bottom+38, p.X)
	for i, s := range p.Series {
		d.series(i%3, s, sx, sy)
	}
}

// keys say which line is which: beside each other, as wide as their texts.
func (d *drawing) keys(p Panel, x, y float64) {
	for i, s := range p.Series {
		d.add(`<circle class="d%d" cx="%s" cy="%s" r="4"/>`, i%3, coordinate(x+5), coordinate(y-4))
		d.text("key", "start", x+14, y, s.Name)
		x += 34 + 6.6*float64(len([]rune(s.Name)))
	}
}

func (d *drawing) series(colour int, s Series, sx, sy scale) {
	var path strings.Builder
	for i, pt := range s.Points {
		path.WriteString([]string{"M", "L"}[min(i, 1)] + coordinate(sx.at(pt.X)) + " " + coordinate(sy.at(pt.Y)))
		d.line(fmt.Sprintf("range c%d", colour), sx.at(pt.X), sy.at(pt.Min), sx.at(pt.X), sy.at(pt.Max))
	}
	d.add(`<path class="line c%d" d="%s"/>`, colour, path.String())
	for _, pt := range s.Points {
		d.add(`<circle class="d%d" cx="%s" cy="%s" r="3.5"><title>%s: %s</title></circle>`, colour, coordinate(sx.at(pt.X)), coordinate(sy.at(pt.Y)), Short(pt.X), Short(pt.Y))
	}
}

// scale places values on a stretch of the picture.
type scale struct {
	log      bool
	low, far float64 // values at the ends
	from, to float64 // coordinates of the ends
	ticks    []float64
}

func (s scale) at(v float64) float64 {
	low, far := s.low, s.far
	if s.log {
		v, low, far = math.Log(v), math.Log(low), math.Log(far)
	}
	if far == low {
		return (s.from + s.to) / 2
	}
	return s.from + (v-low)/(far-low)*(s.to-s.from)
}

// newXScale is logarithmic and has a tick at every value that was measured.
func newXScale(p Panel, from, to float64) scale {
	var all []float64
	for _, s := range p.Series {
		for _, pt := range s.Points {
			all = append(all, pt.X)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return scale{log: true, low: all[0], far: all[len(all)-1], from: from, to: to, ticks: all}
}

// newYScale begins at zero, or at a power of ten.
func newYScale(p Panel, from, to float64) scale {
	least, most := math.Inf(1), 0.0
	for _, s := range p.Series {
		for _, pt := range s.Points {
			least, most = min(least, pt.Min, pt.Y), max(most, pt.Max, pt.Y)
		}
	}
	s := scale{log: p.LogY, from: from, to: to}
	if p.LogY {
		s.low, s.far = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))
		for v := s.low; v <= s.far*1.001; v *= 10 {
			s.ticks = append(s.ticks, v)
		}
		return s
	}
	step := niceStep(most / 4)
	s.far = step * max(1, math.Ceil(most/step))
	for v := 0.0; v <= s.far+step/2; v += step {
		s.ticks = append(s.ticks, v)
	}
	return s
}

// niceStep is the smallest of 1, 2, 5 and their multiples of ten that is not below x.
func niceStep(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= x*0.999 {
			return n * power
		}
	}
	return 10 * power
}

// Short writes a number as it is said: 500, 5k, 1.28k, 10M.
func Short(x float64) string {
	unit := ""
	switch {
	case x >= 1e6:
		x, unit = x/1e6, "M"
	case x >= 1e3:
		x, unit = x/1e3, "k"
	}
	return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) + unit
}
