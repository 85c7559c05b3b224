package scheduler

import "sync"

// mailbox is an unbounded queue into the scheduler's goroutine. It is unbounded because those who post (the spool's
// committer, attempts that have ended) must never wait for the scheduler, which may be waiting for them; what bounds
// it is that every message belongs to an event in flight or to one commit.
type mailbox struct {
	mu     sync.Mutex // guards queue
	queue  []message
	signal chan struct{}
}

// message is something to be done in the scheduler's goroutine.
type message interface{ handle() }

// call is a message that is a function.
type call func()

func (f call) handle() { f() }

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

func (m *mailbox) post(f func()) { m.put(call(f)) }

func (m *mailbox) put(one message) {
	m.mu.Lock()
	m.queue = append(m.queue, one)
	first := len(m.queue) == 1
	m.mu.Unlock()
	if first {
		select {
		case m.signal <- struct{}{}:
		default:
		}
	}
}

// take swaps the queue for the given empty one, so that two slices serve forever.
func (m *mailbox) take(empty []message) []message {
	m.mu.Lock()
	defer m.mu.Unlock()
	full := m.queue
	m.queue = empty
	return full
}
