package server

import (
	"errors"
	"os"
	"sync"
	"time"
)

// deadline is the time of one direction of a connection. net/http sets it about eight times for a request, and each time
// would move a timer of the runtime. So the timer is touched only where it would go off too late; one that goes off too
// early is set anew then, about once in the shortest of the Limits.
//
// Nothing is decided before an operation begins, hence nothing can be missed: a wanted time that comes before the timer's
// is set on it at once, whether or not somebody is in the operation; only what an operation came back with is judged.
type deadline struct {
	set func(time.Time) error // sets the connection's own deadline

	mu     sync.Mutex // guards what follows, and the order in which set is called
	wanted time.Time  // what the user of the connection set last; zero: none
	armed  time.Time  // what the connection has; zero: none
}

// want makes t the wanted time; zero means none.
func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if t.IsZero() || !d.armed.IsZero() && !t.Before(d.armed) {
		return nil // what is armed goes off too early, if ever
	}
	return d.armLocked()
}

func (d *deadline) armLocked() error {
	d.armed = d.wanted
	return d.set(d.armed)
}

// early tells of an operation's error that it is a timeout which nobody wants yet. The wanted one is set then, so that
// the operation can go on.
func (d *deadline) early(err error) bool {
	// Not net.Error's Timeout: that is also true of a peer that the kernel has given up.
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !d.wanted.After(d.armed) {
		return false
	}
	return d.armLocked() == nil
}

// Write writes until the wanted deadline.
func (c *conn) Write(p []byte) (int, error) {
	done := 0
	for {
		n, err := c.Conn.Write(p[done:])
		done += n
		if !c.writing.early(err) {
			return done, err
		}
		if done == len(p) {
			return done, nil
		}
	}
}

// read reads until the wanted deadline.
func (c *conn) read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if !c.reading.early(err) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetWriteDeadline sets until when Write may take.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writing.want(t) }

// SetReadDeadline sets until when Read may take. A connection beyond the bound is granted less time than others.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.beyond {
		if last := c.since.Add(beyondTime); t.IsZero() || t.After(last) {
			t = last
		}
	}
	c.lookOut.Store(t.IsZero() && c.onDemand())
	return c.reading.want(t)
}
