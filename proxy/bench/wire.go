package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// requests are whole requests as bytes, one for each path that a load is spread over. Written by hand, and once for all:
// net/http's client would cost the machine as much as the server that is measured.
func requests(s loadSpec) [][]byte {
	paths := []string{s.Path}
	if s.Spread > 0 {
		paths = paths[:0]
		for i := range s.Spread {
			paths = append(paths, s.Path+strconv.Itoa(i))
		}
	}
	all := make([][]byte, len(paths))
	for i, path := range paths {
		all[i] = request(s, path)
	}
	return all
}

// getTarget is how long the request target of a GET is: that of a usual postback with its parameters.
const getTarget = 200

func request(s loadSpec, path string) []byte {
	stamp := ""
	if s.Stamp {
		stamp = stampField + strings.Repeat("0", stampDigits) + "\r\n"
	}
	if s.Get {
		path += "?click_id=a1b2c3d4&amount=19.99&note="
		path += strings.Repeat("x", max(0, getTarget-len(path)))
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, s.Addr, stamp)
	}
	body := jsonBody(s.Body)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		path, s.Addr, len(body), stamp, body)
}

// A stamp tells the receiver when its request was meant to leave: Unix nanoseconds, with zeros in front. It is a header
// field of its own, since whatever passes the request on must leave it as it is.
const (
	stampField  = "Bench-Sent: "
	stampDigits = 20
)

// stamp writes the time into a request that has room for it.
func stamp(request []byte, at time.Time) {
	from := bytes.Index(request, []byte(stampField)) + len(stampField)
	copy(request[from:from+stampDigits], fmt.Appendf(nil, "%0*d", stampDigits, at.UnixNano()))
}

// jsonBody is a JSON object of exactly so many bytes, and no fewer than it needs.
func jsonBody(size int) string {
	const head, tail = `{"type":"conversion","click_id":"a1b2c3d4","amount":1999,"note":"`, `"}`
	return head + strings.Repeat("x", max(0, size-len(head)-len(tail))) + tail
}

// message is what both sides need to know of a head that was read.
type message struct {
	start   []byte // the first line; valid until the next read
	length  int    // of the body
	eventID []byte // of Postern-Event-Id; a copy
	sent    int64  // of the stamp; 0 where there is none
	closes  bool
}

var (
	errChunked = errors.New("a chunked message, which this minimal reader does not read")
	errHead    = errors.New("not an HTTP/1.1 message")
)

// readHead reads one message's head. It understands what Postern, net/http and this program write, and refuses the rest.
func readHead(r *bufio.Reader, into *message) error {
	line, err := readLine(r)
	if err != nil {
		return err
	}
	into.start = append(into.start[:0], line...)
	into.length, into.closes, into.eventID, into.sent = 0, false, into.eventID[:0], 0
	for {
		line, err := readLine(r)
		if err != nil {
			return noEOF(err)
		}
		if len(line) == 0 {
			return nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return errHead
		}
		if err := into.field(name, bytes.TrimSpace(value)); err != nil {
			return err
		}
	}
}

func (m *message) field(name, value []byte) (err error) {
	switch {
	case is(name, "content-length"):
		m.length, err = strconv.Atoi(string(value))
		if err == nil && m.length < 0 {
			err = errHead
		}
	case is(name, "transfer-encoding"):
		err = errChunked
	case is(name, "connection"):
		m.closes = bytes.EqualFold(value, []byte("close"))
	case is(name, "postern-event-id"):
		m.eventID = append(m.eventID, value...)
	case is(name, "bench-sent"):
		m.sent, err = strconv.ParseInt(string(value), 10, 64)
	}
	return err
}

func is(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, []byte(want))
}

func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if len(line) > 0 {
			err = noEOF(err)
		}
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// status reads the three digits of a status line; 0 where it is none.
func status(line []byte) int {
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0
	}
	n, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0
	}
	return n
}
