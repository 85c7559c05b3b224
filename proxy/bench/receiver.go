package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// received is what a receiver tells of itself. Times are Unix nanoseconds.
type received struct {
	Requests    int64     // all that came
	Events      int64     // distinct event IDs, or requests without one
	First, Last int64     // when the first came, and the last that was waited for
	Latency     latencies // of those with a stamp, from the time at which they were meant to leave
}

// receiver answers every request with an empty 200 and counts event IDs.
type receiver struct {
	seed maphash.Seed

	mu      sync.Mutex // guards what follows
	seen    map[uint64]struct{}
	took    []time.Duration // of every first receipt of an event with a stamp
	now     received
	want    int64
	reached chan received // has room for one
}

func newReceiver() *receiver {
	r := &receiver{seed: maphash.MakeSeed()}
	r.reset()
	return r
}

func (r *receiver) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.now, r.want, r.reached, r.took = map[uint64]struct{}{}, received{}, 0, nil, nil
}

// roleReceiver serves, and answers three commands on its standard input: "count", "reset", and "wait N", which is
// answered when N events have come.
func roleReceiver(stdin io.Reader, stdout io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r := newReceiver()
	go r.serve(ln)
	out := json.NewEncoder(stdout)
	if err := out.Encode(address{ln.Addr().String()}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		var n int64
		switch command := lines.Text(); {
		case command == "reset":
			r.reset()
		case command == "count":
		default:
			if _, err := fmt.Sscanf(command, "wait %d", &n); err != nil {
				return fmt.Errorf("the receiver does not know the command %q", command)
			}
		}
		got := <-r.wait(n)
		got.Latency = r.latency()
		if err := out.Encode(got); err != nil {
			return err
		}
	}
	return ln.Close()
}

// wait returns a channel that has the counts when n events have come.
func (r *receiver) wait(n int64) <-chan received {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan received, 1)
	if r.now.Events >= n {
		c <- r.now
		return c
	}
	r.want, r.reached = n, c
	return c
}

// latency sums up the stamps that came so far.
func (r *receiver) latency() latencies {
	r.mu.Lock()
	took := slices.Clone(r.took)
	r.mu.Unlock()
	return summarise(took)
}

func (r *receiver) serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go r.answer(c)
	}
}

var emptyOK = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

func (r *receiver) answer(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 8192)
	var m message
	for {
		if readHead(in, &m) != nil {
			return
		}
		if _, err := in.Discard(m.length); err != nil {
			return
		}
		r.count(m.eventID, m.sent)
		if _, err := c.Write(emptyOK); err != nil || m.closes {
			return
		}
	}
}

func (r *receiver) count(eventID []byte, sent int64) {
	key := maphash.Bytes(r.seed, eventID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Requests++
	if len(eventID) > 0 {
		if _, again := r.seen[key]; again {
			return
		}
		r.seen[key] = struct{}{}
	}
	r.now.Events++
	r.now.Last = time.Now().UnixNano()
	if sent > 0 {
		r.took = append(r.took, time.Duration(r.now.Last-sent))
	}
	if r.now.First == 0 {
		r.now.First = r.now.Last
	}
	if r.reached != nil && r.now.Events >= r.want {
		r.reached <- r.now
		r.reached = nil
	}
}
