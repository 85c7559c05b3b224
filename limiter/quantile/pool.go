package quantile

import "sync/atomic"

// MaxExact is how many samples a window keeps exactly, whatever its pool has left.
const MaxExact = 100_000

// Pool is a budget of exact samples that the windows of a process share: 16 bytes each. A window that finds it used up
// goes on with its own oldest samples counted in buckets. Safe for concurrent use.
type Pool struct {
	free atomic.Int64
}

// NewPool returns a budget of that many exact samples.
func NewPool(maxExactSamples int) *Pool {
	p := &Pool{}
	p.free.Store(int64(max(maxExactSamples, 0)))
	return p
}

// NewWindow returns an empty window that takes its exact samples from the pool.
func (p *Pool) NewWindow() *Window { return &Window{pool: p} }

// Close gives the window's exact samples back to its pool. The window is empty then, and may be used again.
func (w *Window) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.give(len(w.exact) - w.head)
	w.exact, w.head, w.slots = nil, 0, nil
}

// take takes room for one sample. A nil pool has no bounds.
func (p *Pool) take() bool {
	if p == nil {
		return true
	}
	if p.free.Add(-1) >= 0 {
		return true
	}
	p.free.Add(1)
	return false
}

func (p *Pool) give(n int) {
	if p != nil {
		p.free.Add(int64(n))
	}
}
