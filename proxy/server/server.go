// Package server is what all listeners have in common: how a socket is opened, how many connections may be open, how long
// a client may take, and how much it may say before it is understood.
//
// It promises that nobody holds a listener for ever: a header, a request, an answer and an idle connection each have a
// time, a header has a size, and connections have a number. Beyond that number the connection that has been idle for
// longest gives way; where none is idle, a connection is still taken, for one request: the probes' paths are answered,
// anything else gets 503 with Retry-After, so that a client learns why and a kubelet learns that we live. Nothing of a
// request gets into the log. A Unix socket has its file's mode from its first moment, and only a socket that nobody
// listens on is ever replaced. What net/http does for a request is not made dearer by any of this: deadlines that nobody
// waits for move no timer, and whether a client leaves is looked at where a handler asks (Config.WatchOnDemand, Watch).
//
// It leaves out who may come in (package guard) and every meaning of a request.
package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"postern/proxy/problem"
	"postern/proxy/redact"
)

// Limits are the times and sizes that a listener grants a client.
type Limits struct {
	Header      time.Duration // until a request's header is complete
	Read        time.Duration // until the request is, its body included: what trickles for longer is broken off
	Write       time.Duration // from the header's end until the answer is written
	Idle        time.Duration // between two requests
	HeaderBytes int           // beyond it: 431
}

// The limits of our listeners.
var (
	// Ingest has its clients beside it: what takes longer is broken, and would keep a file descriptor for nothing.
	Ingest = Limits{
		Header:      10 * time.Second,
		Read:        60 * time.Second,
		Write:       180 * time.Second, // reading, a slow commit and the longest Prefer: wait together
		Idle:        120 * time.Second, // longer than the pools of common clients keep a connection
		HeaderBytes: 256 << 10,         // the target is in there too; a client that never ends its header holds no more
	}
	// Admin is for people and scrapers, who ask small things. What touches every dead letter lifts its own limits.
	Admin = Limits{
		Header:      10 * time.Second,
		Read:        30 * time.Second,
		Write:       60 * time.Second, // a scraper far away reads /metrics
		Idle:        120 * time.Second,
		HeaderBytes: 64 << 10,
	}
)

// Config says how to serve.
type Config struct {
	Name    string // the listener's word in texts: ingest, admin or probes
	Handler http.Handler
	Logger  *slog.Logger
	Limits  Limits
	// MaxConnections bounds the connections that are open at once; zero means no bound.
	MaxConnections int
	// WatchOnDemand says that the handler seldom wants to know that its client leaves: a request's context does not tell
	// it then, and Watch must be asked. It costs less for each request. All of Limits must be set.
	WatchOnDemand bool
	// Always are the paths that are answered beyond that bound too.
	Always []string
	// Refused is called for each request that is refused for it; nil: nobody counts.
	Refused func()
}

// Server serves one listener.
type Server struct {
	cfg  Config
	http *http.Server
}

// New makes a Server: HTTP/1 only, and the handler undisturbed.
func New(cfg Config) *Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s := &Server{cfg: cfg}
	s.http = &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            cfg.Limits.Header,
		ReadTimeout:                  cfg.Limits.Read,
		WriteTimeout:                 cfg.Limits.Write,
		IdleTimeout:                  cfg.Limits.Idle,
		MaxHeaderBytes:               cfg.Limits.HeaderBytes,
		DisableGeneralOptionsHandler: true, // OPTIONS * may have a Postern-Url, and is the guard's to see
		Protocols:                    protocols,
		ErrorLog:                     redact.ServerLog(cfg.Logger, cfg.Name),
		ConnState:                    changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	return s
}

// Serve answers what comes by ln, until Shutdown or Close; then it returns http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error {
	return s.http.Serve(newListener(ln, s.cfg))
}

// Shutdown closes the listener and waits for requests under way.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close closes the listener and every connection.
func (s *Server) Close() error { return s.http.Close() }

// ServeHTTP answers for connections beyond the bound, and hands everything else on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil || !c.beyond {
		s.cfg.Handler.ServeHTTP(w, r)
		return
	}
	c.serving.Store(true)
	w.Header().Set("Connection", "close")
	for _, path := range s.cfg.Always {
		if r.URL.Path == path {
			s.cfg.Handler.ServeHTTP(w, r)
			return
		}
	}
	if s.cfg.Refused != nil {
		s.cfg.Refused()
	}
	problem.Write(w, problem.Problem{
		Status: http.StatusServiceUnavailable, Slug: "too-many-connections", Title: "Too many connections", RetryAfter: time.Second,
		Detail: "All connections of this listener are in use. Try again, and keep fewer open at once; an operator can raise " + s.key() + ".",
	})
}

// key is the setting that bounds the connections.
func (s *Server) key() string {
	if s.cfg.Name == "ingest" {
		return "max_connections"
	}
	return s.cfg.Name + ".max_connections"
}

type connKey struct{}
