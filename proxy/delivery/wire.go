package delivery

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"postern/proxy/retry"
)

// meter is a connection that tells what left through it; of one that carries several requests at once, what left of this
// one. Written never decreases below what was certain before; OnWrite
// replaces the function that is called after every write.
type meter interface {
	Written() int64
	OnWrite(f func())
}

// bufferSize is net/http's write buffer. It is emptied in whole when it is full, and past it goes what is left of a body
// by then. So if what has left is not a whole number of buffers, it was the request's end; if it is, the end is still in
// the buffer and leaves with the next write.
const bufferSize = 4 << 10

// wire watches one attempt through net/http's trace: how far it got, and whether any byte of it left.
type wire struct {
	mu       sync.Mutex // guards all below: hooks run on several goroutines, those of an abandoned dial even later
	onWrote  func(time.Time)
	phase    retry.Class // of the dial that runs
	asked    bool        // a connection was asked for
	got      bool        // and there is one
	reused   bool
	meter    meter // nil: the connection does not count
	start    int64 // the meter's reading before this request
	left     bool  // bytes left through an earlier connection
	answered bool  // a byte of an answer came
	complete bool  // net/http has written the whole request, its buffer aside
}

func (w *wire) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:              func(string) { w.set(func() { w.asked = true }) },
		DNSStart:             func(httptrace.DNSStartInfo) { w.enter(retry.DNS) },
		ConnectStart:         func(string, string) { w.enter(retry.Connect) },
		TLSHandshakeStart:    func() { w.enter(retry.TLS) },
		TLSHandshakeDone:     w.handshaken,
		GotConn:              w.gotConn,
		WroteRequest:         w.wroteRequest,
		GotFirstResponseByte: w.firstByte,
	}
}

func (w *wire) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// begin forgets an earlier connection of the same attempt, but not that something left through it.
func (w *wire) begin() {
	w.set(func() {
		w.left = w.sentLocked()
		w.phase, w.asked, w.got, w.reused, w.meter, w.complete = "", false, false, false, nil, false
	})
}

func (w *wire) enter(phase retry.Class) { w.set(func() { w.phase = phase }) }

// handshaken goes back to connect after a handshake that went well: it was the proxy's, or the connection is there.
func (w *wire) handshaken(_ tls.ConnectionState, err error) {
	if err == nil {
		w.enter(retry.Connect)
	}
}

func (w *wire) gotConn(info httptrace.GotConnInfo) {
	w.set(func() {
		w.left = w.sentLocked()
		w.got, w.reused = true, info.Reused
		if w.meter, _ = info.Conn.(meter); w.meter != nil {
			w.start = w.meter.Written()
			w.meter.OnWrite(w.afterWrite)
		}
	})
}

func (w *wire) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	w.mu.Lock()
	w.complete = true
	gone := w.meter == nil || (w.meter.Written()-w.start)%bufferSize != 0
	w.mu.Unlock()
	if gone {
		w.report()
	}
}

// afterWrite runs after each write to the connection, also to one that a later request uses by now: then there is
// nothing left to report.
func (w *wire) afterWrite() {
	w.mu.Lock()
	complete := w.complete
	w.mu.Unlock()
	if complete {
		w.report()
	}
}

func (w *wire) firstByte() {
	w.set(func() { w.answered = true })
	w.report()
}

// report tells the caller, once, that the request has left by now. It does so under the lock, so that close waits for
// it and nothing is told after the attempt's end.
func (w *wire) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onWrote != nil {
		w.onWrote(time.Now())
		w.onWrote = nil
	}
}

// close ends the watch: what left without having been reported is reported now, and nothing afterwards.
func (w *wire) close() {
	if w.sent() {
		w.report()
	}
	w.set(func() { w.onWrote = nil })
}

// sent tells whether any byte of the request left, or may have.
func (w *wire) sent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sentLocked()
}

func (w *wire) sentLocked() bool {
	if w.left || !w.got {
		return w.left
	}
	return w.meter == nil || w.meter.Written() > w.start
}

// unusedStale tells whether nothing of the request left although there was a connection, a used one: it had been closed.
func (w *wire) unusedStale() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got && w.reused && !w.answered && !w.sentLocked()
}

// stale tells whether the connection that broke had been used before and brought no byte of an answer.
func (w *wire) stale() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got && w.reused && !w.answered
}

// dialling is the phase of a dial that did not come to its end; empty if it did, or none began.
func (w *wire) dialling() (phase retry.Class, asked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.got {
		return "", true
	}
	return w.phase, w.asked
}
