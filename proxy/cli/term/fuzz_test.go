package term

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzClean: whatever a receiver sends, nothing of it steers the terminal.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b]0;title\x07", "\r\n\t", "\xff\xfe\x00", "\u009b31m", "a\u202eb", "🙂"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		for line := range strings.Lines(CleanText(s)) {
			if rest := strings.Trim(strings.ReplaceAll(line, "\t", ""), "\n"); rest != Clean(rest) {
				t.Errorf("CleanText(%q) has the line %q", s, line)
			}
		}
	})
}

// FuzzTable: rows stay rows, and cells that may not be cut stay whole, at any width.
func FuzzTable(f *testing.F) {
	f.Add("evt_1", "https://partner.example", 40)
	f.Add("", "\n", 1)
	f.Add("größe\x1b", strings.Repeat("x", 200), 80)
	f.Fuzz(func(t *testing.T, id, note string, width int) {
		var b bytes.Buffer
		table := NewTable(Column{Title: "ID"}, Column{Title: "NOTE", Cut: true}, Column{Title: "N", Right: true})
		table.Row(Cell{Text: id}, Cell{Text: note}, Cell{Text: "7"})
		if err := table.Write(&Writer{Writer: &b, Width: width}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		per := (len(lines) - 1) / 2 // lines of a row: two where the ID stands alone
		row := lines[per:]
		switch {
		case len(lines) != 2*per+1 || per > 2 || width <= 0 && per > 1,
			per == 1 && width <= 0 && !strings.HasSuffix(row[0], "7"),
			!strings.HasPrefix(row[0], strings.TrimRight(Clean(id), " ")):
			t.Errorf("%q, %q at %d became %q", id, note, width, b.String())
		}
		for _, line := range row[min(1, per-1):per] {
			if n := utf8.RuneCountInString(line); width > 0 && n > width && line != strings.TrimRight(Clean(id), " ") {
				t.Errorf("%q, %q at %d has a line of %d columns: %q", id, note, width, n, b.String())
			}
		}
	})
}
