package torture

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// mode is how a partner behaves.
type mode string

// The modes. What they answer counts as a delivery only where it begins with a 2xx.
const (
	fine     mode = "answers 200"
	slow     mode = "answers late"
	hangs    mode = "hangs"
	trickles mode = "trickles"
	resets   mode = "resets"
	shortens mode = "closes mid-answer"
	cuts     mode = "closes mid-request"
	garbles  mode = "sends garbage"
	redirect mode = "redirects"
	fails    mode = "answers 500"
	throttle mode = "answers 429"
	retires  mode = "answers 410"
	refuses  mode = "refuses connections"
	expires  mode = "has an expired certificate"
)

// badModes are what a partner may be in a round, expires apart.
var badModes = []mode{slow, hangs, trickles, resets, shortens, cuts, garbles, redirect, fails, throttle, retires, refuses}

// partner is one receiver.
type partner struct {
	name   string
	addr   string
	tls    *tls.Config // nil: plain
	book   *ledger
	canary string // where redirects lead

	mu    sync.Mutex // guards what follows
	mode  mode
	moved chan struct{} // closed when the mode changes
	ln    net.Listener
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// open begins to listen.
func (p *partner) open() error {
	var ln net.Listener
	err := poll(time.Minute, "the partner's port", func() (ok bool, err error) {
		ln, err = net.Listen("tcp", p.addr)
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	if p.tls != nil {
		ln = tls.NewListener(ln, p.tls)
	}
	p.mu.Lock()
	p.ln = ln
	p.mu.Unlock()
	p.wg.Go(func() { p.accept(ln) })
	return nil
}

func (p *partner) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[c] = true
		p.mu.Unlock()
		p.wg.Go(func() {
			p.serve(c)
			c.Close()
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
		})
	}
}

// set changes the mode; who hangs is let go.
func (p *partner) set(m mode) error {
	p.mu.Lock()
	before := p.mode
	p.mode = m
	close(p.moved)
	p.moved = make(chan struct{})
	p.mu.Unlock()
	switch {
	case m == refuses && before != refuses:
		p.shut()
	case m != refuses && before == refuses:
		return p.open()
	case before != m && (m == expires || before == expires):
		p.drop() // the next handshake sees the other certificate
	}
	return nil
}

func (p *partner) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *partner) shut() {
	p.mu.Lock()
	p.ln.Close()
	p.mu.Unlock()
	p.drop()
}

func (p *partner) close() {
	p.set(fine)
	p.shut()
	p.wg.Wait()
}

func (p *partner) now() (mode, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.moved
}

func (p *partner) serve(c net.Conn) {
	br := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		m, moved := p.now()
		h := p.book.saw(p.name, req, m)
		if m == cuts {
			io.CopyN(io.Discard, req.Body, 1)
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		p.book.read(h, body)
		if !p.answer(c, h, m, moved) || req.Close {
			return
		}
	}
}

// answer tells whether the connection stays open.
func (p *partner) answer(c net.Conn, h *hit, m mode, moved <-chan struct{}) bool {
	say := func(status int, rest string) bool {
		p.book.answered(h, status)
		_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n%s", status, http.StatusText(status), rest)
		return err == nil
	}
	const empty = "Content-Length: 0\r\n\r\n"
	switch m {
	case slow:
		pause(moved, 80*time.Millisecond)
		return say(200, empty)
	case hangs:
		<-moved
		return false
	case trickles:
		for _, b := range []byte("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 100)) {
			if _, err := c.Write([]byte{b}); err != nil || pause(moved, 50*time.Millisecond) {
				return false
			}
		}
		return false
	case resets:
		if t, ok := c.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
		return false
	case shortens:
		say(500, "Content-Length: 1000\r\n\r\nshort")
		return false
	case garbles:
		io.WriteString(c, "SSH-2.0-none\r\n\x00\xff\xfe")
		return false
	case redirect:
		return say(302, "Location: "+p.canary+"\r\n"+empty)
	case fails:
		return say(500, "Content-Length: 4\r\n\r\n\x00\xffno")
	case throttle:
		return say(429, "Retry-After: 1\r\n"+empty)
	case retires:
		return say(410, empty)
	}
	return say(200, empty)
}

// pause waits, and tells whether the mode changed before that.
func pause(moved <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-moved:
		return true
	case <-t.C:
		return false
	}
}

// serialHeader carries the number of an offer to the partner; it is an end-to-end header like any other.
const serialHeader = "X-Serial"

func serialOf(h http.Header) int {
	n, _ := strconv.Atoi(h.Get(serialHeader))
	return n
}
