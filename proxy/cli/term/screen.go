package term

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Screen is the whole terminal, for a while: its text is kept aside and comes back with Close, so that nothing is left
// behind. While it is open, keys arrive as they are pressed and are not echoed; Ctrl-C is a key then, and no signal.
type Screen struct {
	w     *Writer
	out   *os.File
	keys  chan byte
	close func()
}

// The codes of a terminal: another screen and back, the cursor away and back, home, the rest of a line, the rest below.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

var errNoTerminal = errors.New("this is no terminal")

// OpenScreen takes the terminal that w writes to. Keys are read from in where that is a terminal, too; else there are none.
func OpenScreen(w *Writer, in io.Reader) (*Screen, error) {
	out, ok := w.Writer.(*os.File)
	if !ok || !w.TTY {
		return nil, errNoTerminal
	}
	s := &Screen{w: w, out: out, keys: make(chan byte, 8)}
	restore := func() {}
	if IsTerminal(in) {
		keyboard := in.(*os.File)
		before, err := term.MakeRaw(int(keyboard.Fd()))
		if err != nil {
			return nil, err
		}
		restore = func() { _ = term.Restore(int(keyboard.Fd()), before) }
		go s.read(keyboard)
	}
	s.close = sync.OnceFunc(func() {
		_, _ = io.WriteString(out, leaveScreen)
		restore()
	})
	if _, err := io.WriteString(out, enterScreen); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// read hands keys on until the terminal has none any more. A read that waits for a key cannot be ended: it lasts as long
// as the process does.
func (s *Screen) read(keyboard *os.File) {
	defer close(s.keys)
	var buf [16]byte
	for {
		n, err := keyboard.Read(buf[:])
		if err != nil {
			return
		}
		for _, key := range buf[:n] {
			select {
			case s.keys <- key:
			default: // nobody takes them; a person presses again
			}
		}
	}
}

// Keys are the bytes of the keys that were pressed.
func (s *Screen) Keys() <-chan byte { return s.keys }

// Size is that of the terminal as it is now.
func (s *Screen) Size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return 80, 24
	}
	return columns, lines
}

// Draw shows what write writes, from the top; what has no room below is left out, and footer is the last line.
func (s *Screen) Draw(write func(*Writer) error, footer string) error {
	columns, lines := s.Size()
	var text bytes.Buffer
	inner := *s.w
	inner.Writer, inner.Width = &text, columns
	if err := write(&inner); err != nil {
		return err
	}
	var frame strings.Builder
	frame.WriteString(home)
	room := lines - 1
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if room -= rows(line+"\n", columns); room < 0 {
			break
		}
		// First, since a full line leaves the cursor on its last character.
		frame.WriteString(restOfLine + line + "\r\n")
	}
	frame.WriteString(restBelow + inner.Paint(Faint, shorten(footer, columns-1)))
	_, err := io.WriteString(s.out, frame.String())
	return err
}

// Close gives the terminal back as it was. It may be called more than once.
func (s *Screen) Close() { s.close() }
