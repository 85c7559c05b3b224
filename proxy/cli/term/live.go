package term

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Live redraws a block of lines in place. It is for terminals; elsewhere the blocks follow each other.
type Live struct {
	w     *Writer
	lines int // of the block that stands there
}

// NewLive prepares a block; nothing is written before the first Draw.
func NewLive(w *Writer) *Live { return &Live{w: w} }

// Draw replaces the block by what write writes, in one write so that nothing flickers.
func (l *Live) Draw(write func(*Writer) error) error {
	var block bytes.Buffer
	if l.w.TTY && l.lines > 0 {
		fmt.Fprintf(&block, "\x1b[%dA\x1b[J", l.lines)
	}
	inner := *l.w
	inner.Writer = &block
	start := block.Len()
	if err := write(&inner); err != nil {
		return err
	}
	l.lines = rows(block.String()[start:], l.w.Width)
	_, err := l.w.Write(block.Bytes())
	return err
}

// steering is what colours a text and takes no room.
var steering = regexp.MustCompile("\x1b\\[[0-9;]*m")

// rows counts the rows of a terminal that text fills: a line that is too wide goes on in the next row.
func rows(text string, width int) int {
	n := 0
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // the cursor is still in it
		}
		n++
		columns := utf8.RuneCountInString(steering.ReplaceAllString(strings.TrimSuffix(line, "\n"), ""))
		if width > 0 && columns > width {
			n += (columns - 1) / width
		}
	}
	return n
}
