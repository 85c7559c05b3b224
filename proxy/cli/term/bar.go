package term

import "strings"

// Bar draws value as a part of whole, in cells characters. It is for terminals: elsewhere, and where there is nothing to
// draw, it is empty.
func (w *Writer) Bar(value, whole float64, cells int) string {
	if !w.TTY || whole <= 0 || !(value > 0) {
		return ""
	}
	filled := max(1, int(min(value/whole, 1)*float64(cells)+0.5)) // something is never drawn as nothing
	return strings.Repeat("█", filled) + strings.Repeat("░", cells-filled)
}
