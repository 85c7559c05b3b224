package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// sizeWatch follows how much room the files of a directory take, in MB (10^6 bytes).
type sizeWatch struct {
	dir   string
	quit  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex // guards what follows
	now     float64
	most    float64
	changed time.Time
	err     error
}

// watchSize begins to follow.
func watchSize(dir string) *sizeWatch {
	w := &sizeWatch{dir: dir, quit: make(chan struct{}), changed: time.Now()}
	w.ended.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			size, err := sizeOf(dir)
			w.note(size, err)
			select {
			case <-w.quit:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *sizeWatch) note(size float64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	if size != w.now {
		w.changed = time.Now()
	}
	w.now, w.most = size, max(w.most, size)
}

// peak is the most that was seen.
func (w *sizeWatch) peak() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// restLimit is how long it may take until a size does not change any more.
const restLimit = time.Minute

// rest waits until the size has not changed for a while, and returns it.
func (w *sizeWatch) rest(ctx context.Context, while time.Duration) (float64, error) {
	w.mu.Lock()
	w.changed = time.Now() // a copy that is about to begin has a while to begin
	w.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	for {
		w.mu.Lock()
		size, still, err := w.now, time.Since(w.changed) > while, w.err
		w.mu.Unlock()
		if err != nil || still {
			return size, err
		}
		if err := sleep(limit, 50*time.Millisecond); err != nil {
			return size, errors.Join(errors.New("the spool's size does not come to rest"), err)
		}
	}
}

// stop ends it.
func (w *sizeWatch) stop() error {
	close(w.quit)
	w.ended.Wait()
	return w.err
}

// sizeOf adds up the lengths of the files in a directory. One that vanishes meanwhile has none.
func sizeOf(dir string) (megabytes float64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return 0, err
		}
		megabytes += float64(info.Size()) / 1e6
	}
	return megabytes, nil
}
