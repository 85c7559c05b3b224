package app

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// logWriter stands between the log and whatever reads it, so that a reader who stalls or dies holds up nothing: lines
// wait in a bounded queue, and those that find it full are dropped and counted.
type logWriter struct {
	out     io.Writer
	dropped atomic.Int64

	mu     sync.Mutex // guards what follows
	queue  [][]byte
	bytes  int
	closed bool

	wake chan struct{}
	done chan struct{}
}

const (
	// maxLogBytes bounds the lines that wait: some seconds of a busy log.
	maxLogBytes = 4 << 20
	// logFlush is how long a stop waits for the reader of the log.
	logFlush = time.Second
)

func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one line. It never blocks and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	fits := !w.closed && w.bytes+len(line) <= maxLogBytes
	if fits {
		w.queue = append(w.queue, append([]byte(nil), line...))
		w.bytes += len(line)
	}
	w.mu.Unlock()
	if !fits {
		w.dropped.Add(1)
		return len(line), nil
	}
	w.signal()
	return len(line), nil
}

func (w *logWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes what waits, until close and the queue is empty.
func (w *logWriter) run() {
	defer close(w.done)
	for range w.wake {
		for {
			w.mu.Lock()
			lines, closed := w.queue, w.closed
			w.queue, w.bytes = nil, 0
			w.mu.Unlock()
			for _, line := range lines {
				if _, err := w.out.Write(line); err != nil {
					w.dropped.Add(1)
				}
			}
			if len(lines) == 0 {
				if closed {
					return
				}
				break
			}
		}
	}
}

// close writes out what waits, for as long as a stop may take: a reader that has stalled does not get the rest, and the
// goroutine that is stuck in its pipe ends with the process.
func (w *logWriter) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	limit := time.NewTimer(logFlush)
	defer limit.Stop()
	select {
	case <-w.done:
	case <-limit.C:
	}
}
