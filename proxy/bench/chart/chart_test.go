package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"postern/proxy/bench/chart"
)

func sample() chart.Chart {
	return chart.Chart{Title: "T & <x>", Note: "note", Panels: []chart.Panel{
		{Title: "Linear", X: "n", Series: []chart.Series{
			{Name: "a", Points: []chart.Point{{1, 900, 800, 1000}, {10, 1900, 1800, 2000}, {100, 2000, 2000, 2100}}},
			{Name: "b", Points: []chart.Point{{1, 0, 0, 0}, {100, 500, 400, 600}}},
		}},
		{Title: "Log", X: "n", LogY: true, Series: []chart.Series{{Name: "a", Points: []chart.Point{{500, 12, 10, 20}, {5000, 700, 600, 900}}}}},
		{Title: "Single", X: "n", Series: []chart.Series{{Name: "a", Points: []chart.Point{{7, 1, 1, 1}}}}},
	}}
}

func draw(t *testing.T, c chart.Chart) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The picture is well-formed, stands alone, says everything that it was told, and everything is within its frame.
func TestPicture(t *testing.T) {
	svg := draw(t, sample())
	if again := draw(t, sample()); again != svg {
		t.Error("the same data make another picture")
	}
	var width, height float64
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range element.Attr {
			v, err := strconv.ParseFloat(a.Value, 64)
			if err != nil || math.IsNaN(v) {
				if strings.Contains(a.Value, "NaN") {
					t.Errorf("%s has %s=%q", element.Name.Local, a.Name.Local, a.Value)
				}
				continue
			}
			switch a.Name.Local {
			case "width":
				width = max(width, v)
			case "height":
				height = max(height, v)
			case "x", "x1", "x2", "cx":
				if v < 0 || v > width {
					t.Errorf("%s=%v is beside the picture (%v)", a.Name.Local, v, width)
				}
			case "y", "y1", "y2", "cy":
				if v < 0 || v > height {
					t.Errorf("%s=%v is beside the picture (%v)", a.Name.Local, v, height)
				}
			}
		}
	}
	for _, want := range []string{"T &amp; &lt;x&gt;", "prefers-color-scheme:dark", ">100<", ">5k<", ">2k<", "Single"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
	if strings.Contains(strings.Replace(svg, "http://www.w3.org/2000/svg", "", 1), "http") {
		t.Error("the picture refers to something outside")
	}
}

func TestDataThatCannotBeDrawn(t *testing.T) {
	for name, points := range map[string][]chart.Point{
		"none": nil, "zero on a logarithmic axis": {{0, 1, 1, 1}}, "negative": {{1, -1, -1, -1}}, "not a number": {{1, math.NaN(), 1, 1}}, "infinite": {{1, 1, 1, math.Inf(1)}},
	} {
		c := chart.Chart{Panels: []chart.Panel{{Series: []chart.Series{{Points: points}}}}}
		if err := c.WriteSVG(io.Discard); !errors.Is(err, chart.ErrData) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := chart.Chart{Panels: []chart.Panel{{LogY: true, Series: []chart.Series{{Points: []chart.Point{{1, 0, 0, 0}}}}}}}
	if err := c.WriteSVG(io.Discard); !errors.Is(err, chart.ErrData) {
		t.Errorf("a rate of nothing on a logarithmic axis: %v", err)
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1: "1", 128: "128", 999: "999", 1000: "1k", 1280: "1.28k", 12345: "12.35k", 500_000: "500k", 1e7: "10M", 0.5: "0.5"} {
		if got := chart.Short(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}
