package egress

import (
	"net"
	"sync/atomic"
)

// conn counts what is written through it, above TLS where there is TLS, so that whoever sent a request can tell whether
// any byte of it can have left, and when its last one did. It is the GotConnInfo.Conn of an HTTP/1.1 request's trace. Under
// TLS it tells whether the receiver is still heard of.
type conn struct {
	net.Conn
	written atomic.Int64
	reads   atomic.Int64 // that brought something
	hook    atomic.Pointer[func()]
}

// Write counts before it writes and corrects afterwards: what is under way counts as gone.
func (c *conn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	if hook := c.hook.Load(); hook != nil {
		(*hook)()
	}
	return n, err
}

// Read counts what brings something.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

// Heard counts the reads that brought something.
func (c *conn) Heard() int64 { return c.reads.Load() }

// Written is how many bytes have left, or may have.
func (c *conn) Written() int64 { return c.written.Load() }

// OnWrite has f called after every Write from now on, by the goroutine that wrote. It replaces the last f; nil ends it.
func (c *conn) OnWrite(f func()) {
	if f == nil {
		c.hook.Store(nil)
		return
	}
	hook := f // f itself would be moved to the heap even where it is nil
	c.hook.Store(&hook)
}
