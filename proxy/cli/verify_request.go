package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"

	"postern/proxy/cli/term"
)

// received is a request that was received: its headers and its exact body.
type received struct {
	header http.Header
	body   []byte
	broken string // why the body is not the whole one
	unread int    // bytes behind the body
}

// request takes the request from where the flags say it is.
func (c *verifyCmd) request(s *session) (received, error) {
	if c.Raw != "" {
		if len(c.Header) > 0 {
			return received{}, usage("--raw has the headers in it; leave --header out")
		}
		data, err := s.readInput(c.Raw)
		if err != nil {
			return received{}, err
		}
		return parseRaw(data)
	}
	header := http.Header{}
	for _, line := range c.Header {
		name, value, err := parseHeader(line)
		if err != nil {
			return received{}, err
		}
		header.Add(name, value)
	}
	body, err := s.readInput(c.Body)
	return received{header: header, body: body}, err
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

// laterHTTP is the start line as tools print it for requests of HTTP/2 and HTTP/3, which have none of their own.
var laterHTTP = regexp.MustCompile(`^([^\r\n]* HTTP/)[23](?:\.\d)?(\r?\n)`)

// parseRaw takes a captured request apart. Line ends may be bare, as editors leave them; without Content-Length and
// chunks the body is all that follows. Errors do not repeat what was captured.
func parseRaw(data []byte) (received, error) {
	data = laterHTTP.ReplaceAll(bytes.TrimLeft(data, "\r\n"), []byte("${1}1.1$2"))
	rest := bufio.NewReader(bytes.NewReader(data))
	r, err := http.ReadRequest(rest)
	if err != nil {
		return received{}, usage("this is not an HTTP request; it begins with a line such as POST /hook HTTP/1.1, then headers, an empty line and the body")
	}
	length, source := r.Header.Get("Content-Length"), io.Reader(r.Body)
	if length == "" && len(r.TransferEncoding) == 0 {
		source = rest
	}
	got := received{header: r.Header}
	if got.body, err = io.ReadAll(source); err != nil {
		got.broken = "it does not end where its chunks say: it was cut, or is broken"
		if len(r.TransferEncoding) == 0 {
			got.broken = fmt.Sprintf("it has %s, and Content-Length says %s: it was cut", term.Count(int64(len(got.body)), "byte"), length)
		}
		return got, nil
	}
	// A line break at the end of the file is an editor's.
	if behind, _ := io.ReadAll(rest); string(behind) != "\n" && string(behind) != "\r\n" {
		got.unread = len(behind)
	}
	return got, nil
}
