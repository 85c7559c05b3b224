package term

import (
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

// Write writes heading and rows. Without a terminal nothing is cut.
func (t *Table) Write(w *Writer) error {
	widths := t.widths(w.Width)
	var b strings.Builder
	heading := make([]Cell, len(t.columns))
	for i, c := range t.columns {
		heading[i] = Cell{Text: c.Title, Color: Strong}
	}
	t.line(&b, w, heading, widths)
	for _, row := range t.rows {
		t.line(&b, w, row, widths)
	}
	_, err := w.Write([]byte(b.String()))
	return err
}

// widths gives every column what its widest cell needs, then takes the excess from those that may be cut.
func (t *Table) widths(limit int) []int {
	widths := make([]int, len(t.columns))
	total := len(gap) * (len(t.columns) - 1)
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
		total += widths[i]
	}
	for excess := total - limit; limit > 0 && excess > 0; excess-- {
		widest := -1
		for i, c := range t.columns {
			if c.Cut && widths[i] > shortest && (widest < 0 || widths[i] > widths[widest]) {
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

func (t *Table) line(b *strings.Builder, w *Writer, cells []Cell, widths []int) {
	var line strings.Builder
	for i, cell := range cells {
		text := shorten(cell.Text, widths[i])
		blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		if i > 0 {
			line.WriteString(gap)
		}
		if t.columns[i].Right {
			line.WriteString(blanks + w.Paint(cell.Color, text))
		} else {
			line.WriteString(w.Paint(cell.Color, text) + blanks)
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
