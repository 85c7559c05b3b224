package term

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func noEnv(string) (string, bool) { return "", false }

func TestWriterToAPipe(t *testing.T) {
	w := New(&bytes.Buffer{}, noEnv)
	if w.TTY || w.Color || w.Width != 0 {
		t.Errorf("a buffer is taken for a terminal: %+v", w)
	}
	if got := w.Paint(Bad, "x"); got != "x" {
		t.Errorf("Paint without a terminal = %q", got)
	}
}

func TestPaint(t *testing.T) {
	w := &Writer{Color: true}
	if got, want := w.Paint(Good, "ok"), "\x1b[32mok\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := w.Paint(Plain, "ok"); got != "ok" {
		t.Errorf("plain text was coloured: %q", got)
	}
	if got := w.Paint(Good, ""); got != "" {
		t.Errorf("nothing was coloured: %q", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":             "plain",
		"größe":             "größe",
		"\x1b[31mred\x1b[0": "?[31mred?[0",
		"a\nb\tc\rd":        "a b c d",
		"bad\xffutf":        "bad?utf",
		"nul\x00":           "nul?",
		"\u202eevil":        "?evil", // right-to-left override
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := CleanText("a\tb\r\nc\x1bd"), "a\tb\nc?d"; got != want {
		t.Errorf("CleanText = %q, want %q", got, want)
	}
}

func TestTableAligns(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(Column{Title: "NAME"}, Column{Title: "N", Right: true}, Column{Title: "NOTE"})
	table.Row(Cell{Text: "a"}, Cell{Text: "1"}, Cell{Text: "x"})
	table.Row(Cell{Text: "größer"}, Cell{Text: "1000"})
	if err := table.Write(&Writer{Writer: &b}); err != nil {
		t.Fatal(err)
	}
	want := "NAME       N  NOTE\na          1  x\ngrößer  1000\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestTableCutsOnlyWhatMayBeCut(t *testing.T) {
	id := "evt_" + strings.Repeat("9", 36)
	for _, width := range []int{0, 20, 60, 80, 200} {
		var b bytes.Buffer
		table := NewTable(Column{Title: "ID"}, Column{Title: "ENDPOINT", Cut: true}, Column{Title: "NOTE", Cut: true})
		table.Row(Cell{Text: id}, Cell{Text: strings.Repeat("e", 50)}, Cell{Text: strings.Repeat("n", 30)})
		if err := table.Write(&Writer{Writer: &b, Width: width}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), id) {
			t.Errorf("width %d: the ID is cut:\n%s", width, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); width >= 80 && n > width {
				t.Errorf("width %d: a line of %d columns", width, n)
			}
		}
		if cut := strings.Contains(b.String(), "…"); cut != (width > 0 && width < 124) {
			t.Errorf("width %d: cut is %v", width, cut)
		}
	}
}

func TestTableColoursDoNotMoveColumns(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(Column{Title: "A"}, Column{Title: "B"})
	table.Row(Cell{Text: "x", Color: Bad}, Cell{Text: "y"})
	table.Row(Cell{Text: "longer"}, Cell{Text: "z"})
	if err := table.Write(&Writer{Writer: &b, Color: true}); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[31mx\x1b[0m       y\n"; !strings.Contains(b.String(), want) {
		t.Errorf("got %q, want %q in it", b.String(), want)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m",
		2*time.Hour + 5*time.Minute: "2h05m", 47 * time.Hour: "47h00m", 49 * time.Hour: "2d", -3 * time.Second: "3s",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, time.Local)
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, "-"},
		{now, "15:00:00 (0s ago)"},
		{now.Add(-4 * time.Minute), "14:56:00 (4m ago)"},
		{now.Add(90 * time.Second), "15:01:30 (in 1m)"},
		{now.Add(-24 * time.Hour), "2026-03-03 15:00:00 (24h00m ago)"},
		{now.AddDate(-1, 0, 0), "2025-03-04 15:00:00 (365d ago)"},
	} {
		if got := When(c.at, now); got != c.want {
			t.Errorf("When(%s) = %q, want %q", c.at, got, c.want)
		}
	}
}

func TestBytesMillisCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 1 << 30: "1.0 GiB", 5 << 40: "5.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	for ms, want := range map[float64]string{0.42: "0.4 ms", 12.3: "12 ms", 3200: "3.2 s"} {
		if got := Millis(ms); got != want {
			t.Errorf("Millis(%g) = %q, want %q", ms, got, want)
		}
	}
	if got := Count(1, "event") + ", " + Count(0, "event"); got != "1 event, 0 events" {
		t.Errorf("Count: %q", got)
	}
}

func TestProgressInALog(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&Writer{Writer: &b}, "replayed")
	for done := range int64(1001) {
		p.Set(done, 1000)
	}
	p.Set(5000, 1000) // more than there is
	p.Set(1, 0)       // nothing to wait for
	p.Close()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 11 {
		t.Fatalf("%d lines, want one per tenth:\n%s", len(lines), b.String())
	}
	if want := "replayed: 1000 of 1000 (100 %)"; lines[10] != want {
		t.Errorf("the last line is %q, want %q", lines[10], want)
	}
}

func TestProgressInUnits(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&Writer{Writer: &b}, "copied")
	p.Format = Bytes
	p.Set(512, 1024)
	if want := "copied: 512 B of 1.0 KiB (50 %)\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&Writer{Writer: &b, TTY: true}, "compacted")
	p.Set(1, 4)
	p.Set(4, 4)
	p.Close()
	p.Close()
	want := "\r\x1b[Kcompacted " + strings.Repeat("█", 7) + strings.Repeat("░", 23) + "  25 % (1 of 4)" +
		"\r\x1b[Kcompacted " + strings.Repeat("█", 30) + " 100 % (4 of 4)\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestLiveRedrawsInPlace(t *testing.T) {
	var b bytes.Buffer
	live := NewLive(&Writer{Writer: &b, TTY: true})
	for _, text := range []string{"one\ntwo\n", "three\n", "four\n"} {
		if err := live.Draw(func(w *Writer) error { _, err := w.Write([]byte(text)); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if want := "one\ntwo\n\x1b[2A\x1b[Jthree\n\x1b[1A\x1b[Jfour\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		value, whole float64
		want         string
	}{
		{0, 10, ""}, {-1, 10, ""}, {math.NaN(), 10, ""}, {1, 0, ""}, {0.001, 10, "█░░░"}, {5, 10, "██░░"}, {10, 10, "████"}, {11, 10, "████"},
	} {
		if got := (&Writer{TTY: true}).Bar(c.value, c.whole, 4); got != c.want {
			t.Errorf("Bar(%g, %g) = %q, want %q", c.value, c.whole, got, c.want)
		}
	}
	if got := (&Writer{}).Bar(5, 10, 4); got != "" {
		t.Errorf("a bar without a terminal: %q", got)
	}
}

// TestNarrowTables: a row never goes on in the next line of the terminal, and an ID is never cut.
func TestNarrowTables(t *testing.T) {
	id := "evt_" + strings.Repeat("9", 36)
	table := NewTable(Column{Title: "ID"}, Column{Title: "ENDPOINT", Cut: true}, Column{Title: "STATE"},
		Column{Title: "P50", Right: true, Extra: true}, Column{Title: "P99", Right: true, Extra: true}, Column{Title: "NEXT", Cut: true})
	table.Row(Cell{Text: id}, Cell{Text: "partner-with-a-name"}, Cell{Text: "dead_letter", Color: Bad}, Cell{Text: "1.5 s"}, Cell{Text: "12 s"}, Cell{Text: "12:00:30 (in 30s)"})
	for width, want := range map[int]string{
		0: "ID                                        ENDPOINT             STATE          P50   P99  NEXT\n" +
			id + "  partner-with-a-name  dead_letter  1.5 s  12 s  12:00:30 (in 30s)\n",
		96: "ID                                        ENDPOINT       STATE          P50   P99  NEXT\n" +
			id + "  partner-with…  dead_letter  1.5 s  12 s  12:00:30 (in…\n",
		80: "ID\n  ENDPOINT             STATE          P50   P99  NEXT\n" +
			id + "\n  partner-with-a-name  dead_letter  1.5 s  12 s  12:00:30 (in 30s)\n",
		52: "ID\n  ENDPOINT        STATE          P50  NEXT\n" +
			id + "\n  partner-with-…  dead_letter  1.5 s  12:00:30 (in …\n",
		42: "ID\n  ENDPOINT      STATE        NEXT\n" +
			id + "\n  partner-wit…  dead_letter  12:00:30 (in…\n",
		30: "ID\n  ENDPOINT         STATE\n" + id + "\n  partner-with-a…  dead_letter\n",
		10: "ID\n" + id + "\n",
	} {
		var b bytes.Buffer
		if err := table.Write(&Writer{Writer: &b, Width: width}); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", width, b.String(), want)
		}
	}
}

// TestLiveCountsRows: what a narrow terminal wraps must be gone back over too.
func TestLiveCountsRows(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  int
	}{
		{"one\ntwo\n", 0, 2},
		{"one\ntwo\n", 80, 2},
		{strings.Repeat("x", 10) + "\n", 10, 1},
		{strings.Repeat("x", 11) + "\n\n", 10, 3},
		{strings.Repeat("ü", 21) + "\n", 10, 3},
		{"\x1b[31m" + strings.Repeat("x", 10) + "\x1b[0m\n", 10, 1},
		{"no end", 3, 0},
	} {
		if got := rows(c.text, c.width); got != c.want {
			t.Errorf("%q at %d columns fills %d rows, want %d", c.text, c.width, got, c.want)
		}
		var b bytes.Buffer
		live := NewLive(&Writer{Writer: &b, TTY: true, Width: c.width})
		for range 2 {
			if err := live.Draw(func(w *Writer) error { _, err := w.Write([]byte(c.text)); return err }); err != nil {
				t.Fatal(err)
			}
		}
		if back := fmt.Sprintf("\x1b[%dA", c.want); c.want > 0 && !strings.Contains(b.String(), back) {
			t.Errorf("%q: %q is not in %q", c.text, back, b.String())
		}
	}
}
