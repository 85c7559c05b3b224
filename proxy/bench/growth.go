package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"postern/proxy/bench/chart"
)

// growthData is what is known of how throughput changes with size: the data of the picture.
type growthData struct {
	Date   string  `json:"date"`
	Go     string  `json:"go"`
	System string  `json:"system"`
	CPUs   int     `json:"cpus"`
	Rounds int     `json:"rounds"`
	Quick  bool    `json:"quick"`
	Curves []curve `json:"curves"`
}

// curve is one quantity after another over one size.
type curve struct {
	Title string `json:"title"`
	X     string `json:"x"`
	// Log is for rates that differ by orders of magnitude.
	Log   bool   `json:"log"`
	Lines []line `json:"lines"`
}

type line struct {
	Name   string  `json:"name"`
	Points []point `json:"points"`
}

type point struct {
	X float64 `json:"x"`
	Y spread  `json:"y"`
}

// runGrowth measures all curves, writes the data, and draws it.
func runGrowth(ctx context.Context, o options, progress io.Writer) error {
	l, err := newLab(ctx, o, progress)
	if err != nil {
		return err
	}
	defer l.close()
	g, err := l.measureGrowth(ctx)
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := writeJSON(o.json, g); err != nil {
			return err
		}
	}
	if o.plot == "" {
		return nil
	}
	return g.draw(o.plot)
}

// redraw makes the picture anew from data that was measured before.
func redraw(data, picture string) error {
	text, err := os.ReadFile(data)
	if err != nil {
		return err
	}
	var g growthData
	if err := json.Unmarshal(text, &g); err != nil {
		return fmt.Errorf("%s is not what --growth writes: %w", data, err)
	}
	return g.draw(picture)
}

// draw writes the picture.
func (g growthData) draw(file string) error {
	var picture bytes.Buffer
	if err := g.chart().WriteSVG(&picture); err != nil {
		return err
	}
	return os.WriteFile(file, picture.Bytes(), 0o644)
}

// chart is the picture of the data.
func (g growthData) chart() chart.Chart {
	c := chart.Chart{
		Title: "Postern as it grows",
		Note: fmt.Sprintf("Median and range; rounds: %d. %d CPUs, which Postern, load generator and receiver share. %s, %s, %s.",
			g.Rounds, g.CPUs, g.System, g.Go, g.Date),
	}
	if g.Quick {
		c.Title += " (a quick look)"
	}
	for _, curve := range g.Curves {
		p := chart.Panel{Title: curve.Title, X: curve.X, LogY: curve.Log}
		for _, line := range curve.Lines {
			s := chart.Series{Name: line.Name}
			for _, pt := range line.Points {
				s.Points = append(s.Points, chart.Point{X: pt.X, Y: pt.Y.Median, Min: pt.Y.Min, Max: pt.Y.Max})
			}
			p.Series = append(p.Series, s)
		}
		c.Panels = append(c.Panels, p)
	}
	return c
}
