package app

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogWriterKeepsLinesAndOrder(t *testing.T) {
	var out bytes.Buffer
	w := newLogWriter(&out)
	for i := range 100 {
		io.WriteString(w, strings.Repeat("x", i)+"\n")
	}
	w.close()
	if lines := strings.Split(out.String(), "\n"); len(lines) != 101 || len(lines[99]) != 99 || w.dropped.Load() != 0 {
		t.Errorf("%d lines, %d dropped", len(lines), w.dropped.Load())
	}
}

// stalled is a reader that takes one line and then nothing, until it is let go.
type stalled struct {
	once sync.Once
	open chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	s.once.Do(func() { <-s.open })
	return len(p), nil
}

func TestStalledReaderHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := &stalled{open: make(chan struct{})}
		w := newLogWriter(reader)
		line := []byte(strings.Repeat("x", 1023) + "\n")
		start := time.Now()
		for range 3 * maxLogBytes / len(line) {
			w.Write(line)
		}
		if time.Since(start) != 0 || w.dropped.Load() < int64(maxLogBytes/len(line)) {
			t.Errorf("%d dropped after %v", w.dropped.Load(), time.Since(start))
		}
		w.close()
		if took := time.Since(start); took != logFlush {
			t.Errorf("the close took %v", took)
		}
		close(reader.open)
	})
}

type dead struct{}

func (dead) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestDeadReaderIsCounted(t *testing.T) {
	w := newLogWriter(dead{})
	io.WriteString(w, "x\n")
	w.close()
	if w.dropped.Load() != 1 {
		t.Errorf("%d dropped", w.dropped.Load())
	}
}
