package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
)

// request is the received request: its headers and its exact body.
func (c *verifyCmd) request(s *session) (http.Header, []byte, error) {
	if c.Raw != "" {
		if len(c.Header) > 0 {
			return nil, nil, usage("--raw has the headers in it; leave --header out")
		}
		data, err := s.readInput(c.Raw)
		if err != nil {
			return nil, nil, err
		}
		return parseRaw(data)
	}
	header := http.Header{}
	for _, line := range c.Header {
		name, value, err := parseHeader(line)
		if err != nil {
			return nil, nil, err
		}
		header.Add(name, value)
	}
	body, err := s.readInput(c.Body)
	return header, body, err
}

// readInput reads a file, or standard input where there is no name or it is -.
func (s *session) readInput(name string) ([]byte, error) {
	if name != "" && name != "-" {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, usage("cannot read the request: %w", err)
		}
		return data, nil
	}
	data, err := io.ReadAll(s.Stdin)
	if err != nil {
		return nil, fmt.Errorf("cannot read standard input: %w", err)
	}
	return data, nil
}

// parseRaw takes a captured request apart. Line ends may be bare, as editors leave them; without Content-Length and
// chunks the body is all that follows. Errors do not repeat what was captured.
func parseRaw(data []byte) (http.Header, []byte, error) {
	rest := bufio.NewReader(bytes.NewReader(bytes.TrimLeft(data, "\r\n")))
	r, err := http.ReadRequest(rest)
	if err != nil {
		return nil, nil, usage("this is not an HTTP/1.1 request; it begins with a line such as POST /hook HTTP/1.1, then headers, an empty line and the body")
	}
	source := io.Reader(r.Body)
	if r.Header.Get("Content-Length") == "" && len(r.TransferEncoding) == 0 {
		source = rest
	}
	body, err := io.ReadAll(source)
	if err != nil {
		return nil, nil, usage("the request's body is cut or broken: it does not end where Content-Length or its chunks say")
	}
	return r.Header, body, nil
}
