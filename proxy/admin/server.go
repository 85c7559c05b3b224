package admin

import (
	"log"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Limits of the server. People and scrapers ask small things; what touches every dead letter lifts its own limits
// (see unhurried).
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second // a scraper far away reads /metrics
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
)

// NewServer makes the server of the admin or the probes listener: HTTP/1 only, and nothing of a request in the log.
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
		DisableGeneralOptionsHandler: true, // the guard is asked for OPTIONS * too
		Protocols:                    protocols,
		ErrorLog:                     log.New(serverLog{logger}, "", 0),
	}
}

// serverLog passes on what an operator can act upon. The rest of net/http's lines are about single requests, and some
// repeat them.
type serverLog struct{ logger *slog.Logger }

// Write gets one message of net/http.
func (l serverLog) Write(line []byte) (int, error) {
	first, stack, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\n")
	switch {
	case strings.HasPrefix(first, "http: Accept error"):
		l.logger.Warn("The admin listener cannot take connections; if files are too many, raise the limit (ulimit -n).", "error", first)
	case strings.HasPrefix(first, "http: panic serving"):
		// The first line has the panic's value, which may hold anything. The stack has places alone.
		l.logger.Error("A fault in Postern ended an admin request; please report it with this stack.", "stack", stack)
	}
	return len(line), nil
}
