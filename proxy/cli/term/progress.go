package term

import (
	"fmt"
	"strconv"
	"strings"
)

// barCells is how wide the bar is drawn.
const barCells = 30

// Progress shows how far something is: one line that redraws on a terminal, one line per tenth elsewhere, so that a
// log of it stays short. It belongs to one goroutine.
type Progress struct {
	// Format writes the two numbers; nil writes them as they are.
	Format func(int64) string

	w     *Writer
	label string
	step  int64 // the last tenth that was written, -1 before the first
	drawn bool
}

// NewProgress prepares a progress display; nothing is written before the first Set.
func NewProgress(w *Writer, label string) *Progress {
	return &Progress{w: w, label: label, step: -1}
}

// Set shows done of total. A total of 0 shows nothing, since there is nothing to wait for.
func (p *Progress) Set(done, total int64) {
	if total <= 0 {
		return
	}
	done = min(max(done, 0), total)
	number := p.Format
	if number == nil {
		number = func(n int64) string { return strconv.FormatInt(n, 10) }
	}
	percent := int64(float64(done) / float64(total) * 100)
	if p.w.TTY {
		filled := int(percent * barCells / 100)
		bar := strings.Repeat("█", filled) + strings.Repeat("░", barCells-filled)
		fmt.Fprintf(p.w, "\r\x1b[K%s %s %3d %% (%s of %s)", p.label, p.w.Paint(Good, bar), percent, number(done), number(total))
		p.drawn = true
		return
	}
	if tenth := percent / 10; tenth > p.step {
		p.step = tenth
		fmt.Fprintf(p.w, "%s: %s of %s (%d %%)\n", p.label, number(done), number(total), percent)
	}
}

// Close ends the redrawn line, so that what follows stands on its own.
func (p *Progress) Close() {
	if p.drawn {
		fmt.Fprintln(p.w)
		p.drawn = false
	}
}
