package term

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// gap stands between two columns.
const gap = "  "

// shortest is how far a column may be cut: less says nothing any more.
const shortest = 12

// Column describes one column of a Table.
type Column struct {
	Title string
	// Right aligns numbers.
	Right bool
	// Cut allows the column to be shortened where the terminal is too narrow. Never set for IDs: a person copies them.
	Cut bool
	// Extra columns are the first to be left out where it is narrower still.
	Extra bool
}

// Cell is one value of a row.
type Cell struct {
	Text  string
	Color Color
}

// Table collects rows and writes them aligned.
type Table struct {
	columns []Column
	rows    [][]Cell
}

// NewTable starts a table with these columns.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds one row; missing cells stay empty. Texts are cleaned.
func (t *Table) Row(cells ...Cell) {
	row := make([]Cell, len(t.columns))
	for i := range row {
		if i < len(cells) {
			row[i] = Cell{Text: Clean(cells[i].Text), Color: cells[i].Color}
		}
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write writes heading and rows. Without a terminal nothing is cut. Where a terminal is too narrow for what must not be
// cut, the first column gets a line of its own, and if that is not enough, columns are left out: first the extra ones,
// then from the right. The first column always stands there whole.
func (t *Table) Write(w *Writer) error {
	all := make([]int, len(t.columns))
	for i := range all {
		all[i] = i
	}
	heading := make([]Cell, len(t.columns))
	for i, c := range t.columns {
		heading[i] = Cell{Text: c.Title, Color: Strong}
	}
	lines := []layout{{columns: all, widths: t.widths(all, w.Width)}}
	if len(all) > 1 && w.Width > 0 && lines[0].total() > w.Width {
		lines = t.stacked(all, w.Width)
	}
	var b strings.Builder
	for _, cells := range append([][]Cell{heading}, t.rows...) {
		for _, l := range lines {
			t.line(&b, w, cells, l)
		}
	}
	_, err := w.Write([]byte(b.String()))
	return err
}

// layout is one line of a row: these columns, this wide, after an indent.
type layout struct {
	indent  string
	columns []int
	widths  []int
}

func (l layout) total() int {
	n := len(l.indent) + len(gap)*(len(l.columns)-1)
	for _, width := range l.widths {
		n += width
	}
	return n
}

// stacked puts the first column on a line of its own, and as many others below it as fit.
func (t *Table) stacked(all []int, limit int) []layout {
	first := layout{columns: all[:1], widths: t.widths(all[:1], 0)}
	for rest := slices.Clone(all[1:]); len(rest) > 0; rest = t.without(rest) {
		below := layout{indent: gap, columns: rest, widths: t.widths(rest, limit-len(gap))}
		if below.total() <= limit {
			return []layout{first, below}
		}
	}
	return []layout{first}
}

// without leaves the least important column out.
func (t *Table) without(columns []int) []int {
	least := len(columns) - 1
	for i, c := range columns {
		if t.columns[c].Extra {
			least = i // the last of them in the end
		}
	}
	return slices.Delete(columns, least, least+1)
}

// widths gives every column what its widest cell needs, then takes the excess from those that may be cut.
func (t *Table) widths(columns []int, limit int) []int {
	widths := make([]int, len(columns))
	total := len(gap) * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(t.columns[c].Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[c].Text))
		}
		total += widths[i]
	}
	for excess := total - limit; limit > 0 && excess > 0; excess-- {
		widest := -1
		for i, c := range columns {
			if t.columns[c].Cut && widths[i] > shortest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func (t *Table) line(b *strings.Builder, w *Writer, cells []Cell, l layout) {
	line := strings.Builder{}
	line.WriteString(l.indent)
	for i, c := range l.columns {
		text := shorten(cells[c].Text, l.widths[i])
		blanks := strings.Repeat(" ", l.widths[i]-utf8.RuneCountInString(text))
		if i > 0 {
			line.WriteString(gap)
		}
		if t.columns[c].Right {
			line.WriteString(blanks + w.Paint(cells[c].Color, text))
		} else {
			line.WriteString(w.Paint(cells[c].Color, text) + blanks)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// shorten keeps the first n runes, the last of them an ellipsis where something was cut.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}
