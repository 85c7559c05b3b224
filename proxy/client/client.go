// Package client speaks to a running Postern: to its admin API, and to its ingest for a single postback.
//
// It promises typed answers that keep the API's own JSON beside them, and errors that tell a person what to do; no
// error repeats a target, a header or a body. Its requests go to Postern itself and nowhere else, which is why it may
// make outgoing HTTP although that is the business of egress and delivery: the environment's proxy variables are
// ignored and redirects are not followed. It leaves out retries: the person at the keyboard decides.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// The addresses of a Postern that was told nothing else.
const (
	DefaultAdmin  = "http://127.0.0.1:8090"
	DefaultIngest = "http://127.0.0.1:8089"
)

const (
	// callTimeout bounds one call. It leaves room for the longest `Prefer: wait`, which is 60 s.
	callTimeout = 75 * time.Second
	// bulkTimeout bounds a replay or a purge of everything at once: a million dead letters take minutes.
	bulkTimeout = time.Hour
)

// maxAnswer bounds what is read of an answer: a list of 1,000 events is well under it.
const maxAnswer = 64 << 20

// Config says where a Postern listens and what opens its door.
type Config struct {
	// Address is http(s)://HOST:PORT, HOST:PORT, :PORT or unix:PATH; empty means the default one.
	Address string
	// TokenFile has the listener's token on its first line; empty where the listener asks for none.
	TokenFile string
	// UserAgent names the program, such as Postern/1.2.3.
	UserAgent string
}

// Reply is a decoded answer together with the JSON as it came.
type Reply[T any] struct {
	Value T
	Raw   json.RawMessage
}

// conn is what both faces share.
type conn struct {
	http  *http.Client
	base  string // scheme://host, without a slash at its end
	shown string // the address as a person would write it
	token string
	agent string
}

func dial(cfg Config, fallback string) (*conn, error) {
	address := cfg.Address
	if address == "" {
		address = fallback
	}
	base, socket, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	token, err := readToken(cfg.TokenFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		DisableCompression: true, // so that a postback gets no Accept-Encoding that nobody asked for
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if socket != "" {
				network, addr = "unix", socket
			}
			return dialer.DialContext(ctx, network, addr)
		},
	}
	shown := base
	if socket != "" {
		shown = "unix:" + socket
	}
	return &conn{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		base: base, shown: shown, token: token, agent: cfg.UserAgent,
	}, nil
}

// readToken returns the file's first line.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the token file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	token := strings.TrimSpace(line)
	if token == "" {
		return "", fmt.Errorf("the token file %s has no token on its first line", path)
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return "", fmt.Errorf("the token on the first line of %s has a blank or a control character in it; a token is one word", path)
	}
	return token, nil
}

// Close lets go of idle connections.
func (c *conn) Close() { c.http.CloseIdleConnections() }

// Address is the address as a person would write it.
func (c *conn) Address() string { return c.shown }

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends r and reads the answer. Any status is an answer; errors mean that there was none.
func (c *conn) do(r *http.Request) (answer, error) {
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", c.agent)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, &UnreachableError{Address: c.shown, Reason: reason(err), err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, &UnreachableError{Address: c.shown, Reason: "the answer broke off", err: err}
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// jsonBody encodes a request body; nil means none.
func jsonBody(v any) (io.Reader, error) {
	if v == nil {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return bytes.NewReader(text), nil
}

// decode reads an answer's JSON into a Reply, or turns a refusal into an error.
func decode[T any](a answer) (Reply[T], error) {
	reply := Reply[T]{Raw: a.body}
	if a.status < 200 || a.status > 299 {
		return reply, refusal(a)
	}
	if len(bytes.TrimSpace(a.body)) == 0 {
		return reply, nil
	}
	if err := json.Unmarshal(a.body, &reply.Value); err != nil {
		return reply, errors.Join(errors.New("the answer is not the JSON that this version expects; is it a Postern, and of this version?"), err)
	}
	return reply, nil
}
