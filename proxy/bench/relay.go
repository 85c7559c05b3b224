package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"
)

// roleRelay is the reference for what this stack can do at best: net/http's server and client in one process, set up as
// Postern sets up its own (packages server and egress), that reads a request, sends it on, and answers 202 when the
// receiver has said 2xx. No spool, no checks, no redirects, no signatures.
func roleRelay(parameters string, stdin io.Reader, stdout io.Writer) error {
	var s proxySpec
	if err := json.Unmarshal([]byte(parameters), &s); err != nil {
		return err
	}
	return serveUntilEOF(newRelay(s), stdin, stdout)
}

// newRelay makes the server of the relay.
func newRelay(s proxySpec) *http.Server {
	transport := &http.Transport{
		MaxConnsPerHost: s.Conns, MaxIdleConnsPerHost: s.Conns, IdleConnTimeout: 50 * time.Second,
		DisableCompression: true, MaxResponseHeaderBytes: 256 << 10, Protocols: http1(),
	}
	return &http.Server{
		Handler:           relay{transport, s.Receiver},
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 120 * time.Second, WriteTimeout: 180 * time.Second,
		MaxHeaderBytes: 256 << 10, DisableGeneralOptionsHandler: true, Protocols: http1(),
	}
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// relay sends each request on to one receiver.
type relay struct {
	transport *http.Transport
	receiver  string
}

// ServeHTTP passes one request on.
func (h relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	out := &http.Request{
		Method: r.Method, URL: &url.URL{Scheme: "http", Host: h.receiver, Path: r.URL.Path, RawQuery: r.URL.RawQuery},
		Header: r.Header, Host: h.receiver, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(body) == 0 {
		out.Body = nil
	}
	resp, err := h.transport.RoundTrip(out.WithContext(r.Context()))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode/100 != 2 {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}
