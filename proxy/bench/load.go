package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// loadSpec is what the load generator is asked to do. Either Count, or For; with Rate the loop is open.
type loadSpec struct {
	Addr, Path string
	Spread     int           // over so many paths: Path with 0, 1, … behind it; 0: Path alone
	Conns      int           // keep-alive connections
	Body       int           // bytes of the JSON of a POST
	Get        bool          // a GET with a target of getTarget bytes instead
	Stamp      bool          // tell the receiver when each request was meant to leave
	Want       int           // the only right status
	Count      int64         // requests in all, or
	For        time.Duration // how long, after
	Warm       time.Duration // a time that is not counted
	Rate       float64       // requests per second; 0: each connection sends as soon as it was answered
}

// loadResult is what came of it. Times are Unix nanoseconds, comparable with those of the receiver: it is one machine.
type loadResult struct {
	Sent           int64 // all of them, those of the warm-up too
	Counted        int64 // answered within the counted time
	Started, Ended int64 // of the counted time
	Latency        latencies
	Wrong          map[int]int64 // answers of another status than Want
	Failed         int64         // connections that broke
	Error          string        // the first reason
}

func (r loadResult) rate() float64 {
	return float64(r.Counted) / time.Duration(r.Ended-r.Started).Seconds()
}

// check refuses a result that is not about the thing that was to be measured.
func (r loadResult) check() error {
	switch {
	case len(r.Wrong) > 0:
		return fmt.Errorf("answers of another status than expected: %v", r.Wrong)
	case r.Failed > 0:
		return fmt.Errorf("%d connections broke, the first one with: %s", r.Failed, r.Error)
	case r.Counted == 0:
		return fmt.Errorf("no request was answered in the counted time")
	}
	return nil
}

func roleLoad(parameters string, stdout io.Writer) error {
	var s loadSpec
	if err := json.Unmarshal([]byte(parameters), &s); err != nil {
		return err
	}
	r, err := load(s)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(r)
}

// load connects, and only then begins: dialling is not what is measured.
func load(s loadSpec) (loadResult, error) {
	conns, requests := make([]*loadConn, s.Conns), requests(s)
	for i := range conns {
		c, err := net.Dial("tcp", s.Addr)
		if err != nil {
			return loadResult{}, err
		}
		defer c.Close()
		conns[i] = &loadConn{conn: c, reader: bufio.NewReaderSize(c, 4096), requests: requests, turn: i, step: s.Conns, want: s.Want}
		if s.Stamp {
			conns[i].requests, conns[i].stamped = [][]byte{slices.Clone(requests[0])}, true // its own: it writes into it
		}
	}
	begin := time.Now()
	for _, c := range conns {
		c.counted = begin.Add(s.Warm)
	}
	next := closedLoop(s, begin)
	if s.Rate > 0 {
		next = openLoop(s, begin)
	}
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { c.run(next) })
	}
	wg.Wait()
	return collect(s, conns, begin, time.Now()), nil
}

// closedLoop gives the time from which the next request counts: now. ok is false when there is none.
func closedLoop(s loadSpec, begin time.Time) func() (time.Time, bool) {
	if s.Count > 0 {
		var taken atomic.Int64
		return func() (time.Time, bool) { return time.Now(), taken.Add(1) <= s.Count }
	}
	end := begin.Add(s.Warm + s.For)
	return func() (time.Time, bool) {
		now := time.Now()
		return now, now.Before(end)
	}
}

// openLoop gives the times at which requests are meant to leave, whether or not earlier ones were answered. A
// connection that takes one late has its request counted from the intended time all the same: what a stalled server
// keeps from being sent is part of its latency (coordinated omission).
func openLoop(s loadSpec, begin time.Time) func() (time.Time, bool) {
	n := int64(s.Rate * (s.Warm + s.For).Seconds())
	due := make(chan time.Time, n)
	go pace(due, n, begin, s.Rate)
	return func() (time.Time, bool) {
		at, ok := <-due
		return at, ok
	}
}

// loadConn is one connection, with one request on it at a time.
type loadConn struct {
	conn     net.Conn
	reader   *bufio.Reader
	requests [][]byte // sent in turns, beginning with turn, by steps of step: the connections share them
	turn     int
	step     int
	stamped  bool
	counted  time.Time // stamps of what was meant to leave before this are zero: the warm-up
	want     int

	head  message
	done  []answered
	wrong map[int]int64
	err   error
}

type answered struct {
	at   time.Time
	took time.Duration
}

func (c *loadConn) run(next func() (time.Time, bool)) {
	for {
		from, ok := next()
		if !ok {
			return
		}
		if c.err = c.once(from); c.err != nil {
			return
		}
		now := time.Now()
		c.done = append(c.done, answered{now, now.Sub(from)})
	}
}

func (c *loadConn) once(from time.Time) error {
	request := c.requests[c.turn%len(c.requests)]
	c.turn += c.step
	switch {
	case c.stamped && from.Before(c.counted):
		stamp(request, time.Unix(0, 0))
	case c.stamped:
		stamp(request, from)
	}
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	if err := readHead(c.reader, &c.head); err != nil {
		return noEOF(err)
	}
	if got := status(c.head.start); got != c.want {
		if c.wrong == nil {
			c.wrong = map[int]int64{}
		}
		c.wrong[got]++
	}
	if _, err := c.reader.Discard(c.head.length); err != nil {
		return err
	}
	if c.head.closes {
		return fmt.Errorf("the server closes the connection")
	}
	return nil
}

// collect adds up what the connections saw. In a timed load only what was answered between warm-up and end counts.
func collect(s loadSpec, conns []*loadConn, begin, end time.Time) loadResult {
	from, to := begin, end
	if s.Count == 0 {
		from = begin.Add(s.Warm)
	}
	if s.Count == 0 && s.Rate == 0 {
		to = from.Add(s.For)
	}
	r := loadResult{Started: from.UnixNano(), Ended: to.UnixNano(), Wrong: map[int]int64{}}
	var took []time.Duration
	for _, c := range conns {
		if c.err != nil && r.Failed == 0 {
			r.Error = c.err.Error()
		}
		if c.err != nil {
			r.Failed++
		}
		for status, n := range c.wrong {
			r.Wrong[status] += n
		}
		r.Sent += int64(len(c.done))
		for _, a := range c.done {
			// An open loop's request belongs to the time at which it was meant to leave, a closed loop's to its answer.
			belongs := a.at
			if s.Rate > 0 {
				belongs = a.at.Add(-a.took)
			}
			if !belongs.Before(from) && !belongs.After(to) {
				took = append(took, a.took)
			}
		}
	}
	r.Counted, r.Latency = int64(len(took)), summarise(took)
	return r
}
