// Package freeport gives tests ports of 127.0.0.1 that nobody else will take before they are used.
//
// It promises that no two test processes of one machine are given the same port while both run, and that a process gets
// a port again only after all its others. It leaves out programs that are not tests of this project, and keeps no file.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports lie below 32768, from where Linux gives out ports by itself: one of those could be given to somebody else,
// an outgoing connection for instance, before it is used.
const (
	first  = 10_000
	size   = 500 // ports of one block; the tests with the most servers have some dozens open at once
	blocks = 40
)

// block is what one process has for itself.
type block struct {
	claim net.Listener // on the first port, open as long as the process lives: the others see that the block is taken
	base  int

	mu   sync.Mutex
	next int // guarded by mu: the offset that is tried next
}

// own is claimed at the first use.
var own = sync.OnceValues(claim)

func claim() (*block, error) {
	for _, n := range rand.Perm(blocks) {
		base := first + n*size
		if ln, err := listen(base); err == nil {
			return &block{claim: ln, base: base, next: 1}, nil
		}
	}
	return nil, fmt.Errorf("no block of ports is free: the first of every %d from %d on is taken", size, first)
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// Next is a port that nothing listens on.
func Next() (int, error) {
	b, err := own()
	if err != nil {
		return 0, err
	}
	return b.take()
}

func (b *block) take() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range size {
		port := b.base + b.next
		b.next = b.next%(size-1) + 1
		if ln, err := listen(port); err == nil {
			return port, ln.Close()
		}
	}
	return 0, errors.New("every port of this process is in use")
}
