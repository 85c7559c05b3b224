package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// pipeWait bounds the wait for a pipe's writer. Without a bound a reload would stand still, and SIGTERM behind it.
const pipeWait = 5 * time.Second

// readLimited reads a whole file and refuses one that is longer than it should be. A pipe is read once, as a shell's
// <(command) gives it; one out of which nothing comes is refused, since it would pass for an empty file.
func readLimited(name string, most int64) ([]byte, error) {
	// Without O_NONBLOCK opening a pipe waits for its writer, without end.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(pipeWait)) // an ordinary file has none, and needs none
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("cannot be read: the pipe %s was not closed by its writer within %v; put what it gives into an ordinary file first", quote(name), pipeWait)
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("the file %s is longer than %s; is it the right one?", quote(name), formatSize(most))
	case len(data) == 0 && isPipe(f):
		return nil, fmt.Errorf("cannot be read: %s is a pipe out of which nothing came, or which was read before; use an ordinary file", quote(name))
	}
	return data, nil
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// readAgain is readLimited for what is read again while running: a pipe gives its bytes only once.
func readAgain(name string, most int64) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("cannot be read: %s is a pipe, and this is read again whenever it changes; use an ordinary file", quote(name))
	}
	return readLimited(name, most)
}
