package pagefile

import (
	"errors"
	"io"
)

// reader reads through a window: a stretch of the file read in one go, which the next requests are served from while
// they fall into it. What is read past the window (the parts of large entries) has a budget, which only a file made to
// be expensive uses up: each of its pages claims the same large stretch.
type reader struct {
	r      io.ReaderAt
	size   int64
	buf    []byte
	start  int64 // the window is buf[:length], from start on
	length int64
	budget int64 // bytes that into may still read
}

const (
	// readAhead is the largest window: large enough that a system call costs nothing beside the copying.
	readAhead = 1 << 20
	// budgetFactor is the budget in sizes of the file. Reading every entry takes one, and overlapping leftovers of earlier
	// commits hardly a second.
	budgetFactor = 8
)

var errBudget = errors.New("too much was read already: the pages overlap again and again")

func newReader(r io.ReaderAt, size int64) *reader {
	return &reader{r: r, size: size, budget: budgetFactor*size + 16*readAhead}
}

// holds tells whether n bytes at off are in the window.
func (r *reader) holds(off, n int64) bool {
	return off >= r.start && off+n <= r.start+r.length
}

// bytes returns n bytes at off, which must lie within the file. They are valid until the next call. Where they must be
// read, ahead bytes are read along with them (within reason), for later calls.
func (r *reader) bytes(off, n, ahead int64) ([]byte, error) {
	if !r.holds(off, n) {
		if err := r.fill(off, max(n, min(ahead, readAhead, r.size-off))); err != nil {
			// One bad sector must not take its neighbours along.
			if err = r.fill(off, n); err != nil {
				return nil, err
			}
		}
	}
	return r.buf[off-r.start:][:n:n], nil
}

func (r *reader) fill(off, n int64) error {
	r.length = 0
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	if err := r.read(r.buf[:n], off); err != nil {
		return err
	}
	r.start, r.length = off, n
	return nil
}

// into fills dst from off, which must lie within the file, and leaves the window as it is.
func (r *reader) into(dst []byte, off int64) error {
	n := int64(len(dst))
	if r.holds(off, n) {
		copy(dst, r.buf[off-r.start:][:n])
		return nil
	}
	if n > r.budget {
		return errBudget
	}
	r.budget -= n
	return r.read(dst, off)
}

func (r *reader) read(dst []byte, off int64) error {
	n, err := r.r.ReadAt(dst, off)
	if n < len(dst) {
		return err
	}
	return nil
}
