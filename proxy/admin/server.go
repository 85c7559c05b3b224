package admin

import (
	"log/slog"
	"net/http"
	"time"

	"postern/proxy/redact"
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
		ErrorLog:                     redact.ServerLog(logger, "admin"),
	}
}
