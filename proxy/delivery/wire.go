package delivery

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"
)

// meter is a connection that tells what left through it; of one that carries several requests at once, what left of this
// one. Written never decreases below what was certain before; OnWrite
// replaces the function that is called after every write.
type meter interface {
	Written() int64
	OnWrite(f func())
}

// hearing is a connection that tells how often something has come through it.
type hearing interface {
	Heard() int64
	Close() error
}

// errForeign means that what looked like the answer was there before the request: a receiver said more than it was asked
// for, which net/http reads as the next request's answer where that is quick enough (RFC 9112, section 9.2).
var errForeign = errors.New("an answer to no request was on the connection")

// bufferSize is net/http's write buffer. It is emptied in whole when it is full, and past it goes what is left of a body
// by then. So if what has left is not a whole number of buffers, it was the request's end; if it is, the end is still in
// the buffer and leaves with the next write.
const bufferSize = 4 << 10

// wire watches one attempt through net/http's trace: how far it got, and whether any byte of it left.
type wire struct {
	trace httptrace.ClientTrace

	mu       sync.Mutex // guards all below: hooks run on several goroutines, some of them after the attempt's end
	onWrote  func(time.Time)
	asked    bool // a connection was asked for
	got      bool // and there is one
	reused   bool
	meter    meter   // nil: the connection does not count
	start    int64   // the meter's reading before this request
	left     bool    // bytes left through an earlier connection
	used     hearing // of a reused connection that tells; else nil
	heard    int64   // its reading before this request
	foreign  bool    // what came is no answer to this request
	answered bool    // a byte of an answer came
	complete bool    // net/http has written the whole request, its buffer aside
}

// watch has net/http tell of what it does with ctx. It asks for no more than is used: each hook is garbage of every
// attempt, and those of the dial bring another layer of contexts along.
func (w *wire) watch(ctx context.Context) context.Context {
	w.trace = httptrace.ClientTrace{GetConn: w.getConn, GotConn: w.gotConn, GotFirstResponseByte: w.firstByte}
	if w.onWrote != nil {
		w.trace.WroteRequest = w.wroteRequest
	}
	return httptrace.WithClientTrace(ctx, &w.trace)
}

// begin forgets an earlier connection of the same attempt, but not that something left through it.
func (w *wire) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = w.sentLocked()
	w.asked, w.got, w.reused, w.meter, w.complete = false, false, false, nil, false
	w.used, w.foreign = nil, false
}

func (w *wire) getConn(string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
}

func (w *wire) gotConn(info httptrace.GotConnInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = w.sentLocked()
	w.got, w.reused = true, info.Reused
	if w.used, _ = info.Conn.(hearing); w.used != nil && w.reused {
		w.heard = w.used.Heard()
	} else {
		w.used = nil
	}
	if w.meter, _ = info.Conn.(meter); w.meter == nil {
		return
	}
	w.start = w.meter.Written()
	if w.onWrote == nil {
		w.meter.OnWrite(nil) // nor is the last request on it to be told any more
		return
	}
	w.meter.OnWrite(w.afterWrite)
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
	w.mu.Lock()
	used := w.used
	// An answer comes after the connection was picked, and after the beginning of the request has left.
	w.foreign = used != nil && (used.Heard() == w.heard || w.meter != nil && w.meter.Written() == w.start)
	w.answered = !w.foreign
	foreign := w.foreign
	w.mu.Unlock()
	if foreign {
		used.Close() // what does answer this request would be taken for the next one's answer
		return
	}
	w.report()
}

// misled tells whether what came is no answer to the request.
func (w *wire) misled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.foreign
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onWrote = nil
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

// unsent tells whether it is certain that nothing left. A transport that is not traced leaves it open.
func (w *wire) unsent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return (w.asked || w.got) && !w.sentLocked()
}
