package ingest

import (
	"log"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Times and sizes of the server. Clients are beside us: what takes longer is broken, and would keep a file
// descriptor for nothing.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second  // of a whole request
	idleTimeout       = 120 * time.Second // longer than the pools of common clients keep a connection
	writeTimeout      = 180 * time.Second // reading, a slow commit and the longest Prefer: wait together
	maxHeaderBytes    = 256 << 10         // the target is in there too; a client that never ends its header holds no more
)

// NewServer makes the ingest listener's server: HTTP/1 only, the handler undisturbed, and nothing of a request in the
// log.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      handler,
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true, // OPTIONS * may have a Postern-Url
		Protocols:                    protocols,
		ErrorLog:                     log.New(serverLog{logger}, "", 0),
	}
}

// serverLog passes on what an operator can act upon. The rest of net/http's lines are about single requests (a
// semicolon in a query, a header that cannot be read), and some repeat them.
type serverLog struct{ logger *slog.Logger }

// Write gets one message of net/http.
func (l serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	switch {
	case strings.HasPrefix(text, "http: Accept error"):
		l.logger.Warn("The ingest listener cannot take connections; if files are too many, raise the limit (ulimit -n).", "error", text)
	case strings.HasPrefix(text, "http: panic serving"):
		// The first line has the panic's value, which may hold anything. The stack has places alone.
		_, stack, _ := strings.Cut(text, "\n")
		l.logger.Error("A fault in Postern ended an ingest request; please report it with this stack.", "stack", stack)
	}
	return len(line), nil
}
