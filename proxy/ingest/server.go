package ingest

import (
	"log/slog"
	"net/http"
	"time"

	"postern/proxy/redact"
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
		ErrorLog:                     redact.ServerLog(logger, "ingest"),
	}
}
