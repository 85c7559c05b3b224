package term

import (
	"bytes"
	"fmt"
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
	l.lines = bytes.Count(block.Bytes()[start:], []byte("\n"))
	_, err := l.w.Write(block.Bytes())
	return err
}
