package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// roleAnswer is the reference for accepting: net/http with a handler that only answers 202. The server reads the body
// to its end by itself, as it must for the next request on the connection.
func roleAnswer(stdin io.Reader, stdout io.Writer) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	return serveUntilEOF(&http.Server{Handler: handler}, stdin, stdout)
}

// proxySpec is what the reverse proxy and the relay need to know.
type proxySpec struct {
	Receiver string // host:port
	// Conns is how many connections to the receiver are kept; 0 leaves the transport as it comes.
	Conns int
}

// roleProxy is the reference for accepting and delivering: Go's reverse proxy. As it comes it keeps two connections to
// the receiver and dials the others anew; with Conns it keeps as many as there are to it.
func roleProxy(parameters string, stdin io.Reader, stdout io.Writer) error {
	var s proxySpec
	if err := json.Unmarshal([]byte(parameters), &s); err != nil {
		return err
	}
	to := &url.URL{Scheme: "http", Host: s.Receiver}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	if s.Conns > 0 {
		proxy.Transport = &http.Transport{MaxIdleConnsPerHost: s.Conns, MaxConnsPerHost: s.Conns, DisableCompression: true}
	}
	return serveUntilEOF(&http.Server{Handler: proxy}, stdin, stdout)
}

// serveUntilEOF serves on a port of the system's choice, tells it, and ends with stdin.
func serveUntilEOF(server *http.Server, stdin io.Reader, stdout io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	go server.Serve(ln)
	if err := json.NewEncoder(stdout).Encode(address{ln.Addr().String()}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}
