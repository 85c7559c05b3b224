package configs

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// fields is the table of all settings, bound to c.
func (c *Config) fields() section {
	return section{
		{name: "listen", restart: true, kind: plain(&c.Listen.Address, parseListen),
			doc: "Where the application hands over its requests: host:port, or unix:PATH."},
		{name: "token_file", restart: true, kind: plain(&c.Listen.TokenFile, filePathOrEmpty),
			doc: "File with the token that the header Postern-Token must carry. Needed where listen is not loopback. The file is read again when it changes."},
		c.Listen.socketMode(), c.Listen.maxConnections(),
		{name: "admin", kind: c.adminFields(),
			doc: "The listener with the API, the dashboard, the probes and the metrics."},
		{name: "probes", kind: section{
			{name: "listen", restart: true, kind: plain(&c.Probes.Address, parseListenOrEmpty),
				doc: "A third listener with /healthz, /readyz and /metrics alone, such as :9464; empty for none."},
			c.Probes.maxConnections(),
		}, doc: "A listener for a kubelet or a Prometheus that comes by the pod's address."},
		{name: "shutdown_delay", kind: duration(&c.ShutdownDelay, 0),
			doc: "How long ingest stays open after SIGTERM, for the application's last requests."},
		{name: "shutdown_grace", kind: duration(&c.ShutdownGrace, 0),
			doc: "How long running attempts may take to finish after that."},
		{name: "log", kind: section{
			{name: "level", kind: level(&c.Log.Level), doc: "debug, info, warn or error."},
			{name: "format", restart: true, kind: word(&c.Log.Format, "json", "text"), doc: "json, or text for people."},
		}, doc: "What is logged, to standard error."},
		{name: "concurrency", kind: integer(&c.Concurrency, 1, maxConcurrency),
			doc: "Attempts at once, all endpoints together."},
		{name: "spool", kind: c.spoolFields(), doc: "The store on disk that holds everything not yet finished."},
		{name: "defaults", kind: c.Defaults.fields(),
			doc: "The policy that every endpoint starts from, and that ad hoc targets have."},
		{name: "endpoints", kind: endpointList{&c.Endpoints, &c.Defaults},
			doc: "The named endpoints. Each takes the keys of defaults too."},
		{name: "targets", kind: section{
			{name: "ad_hoc", kind: boolean(&c.Targets.AdHoc), doc: "Whether targets other than named endpoints are accepted."},
			{name: "allow", kind: list[string]{&c.Targets.Allow, parseAllow, asString},
				doc: "Networks and hosts that ad hoc targets may reach although they are not public."},
			{name: "allow_private", kind: boolean(&c.Targets.AllowPrivate),
				doc: "Whether ad hoc targets may reach all private and loopback addresses."},
		}, doc: "Where ad hoc targets may go."},
		{name: "outbound_proxy", kind: secret{p: &c.outboundProxy, check: c.setProxy},
			doc: "An http or https proxy for all deliveries; the environment's proxy variables are ignored. A secret."},
		{name: "query_keys_in_logs", kind: list[string]{&c.QueryKeysInLogs, parseQueryKey, asString},
			doc: "Query keys that logs may show; all others stay hidden."},
		{name: "sync", kind: c.syncFields(), doc: "The central Postgres. Without it everything else works."},
	}
}

const maxConcurrency = 65536 // sockets: more than one process may open

func (c *Config) adminFields() section {
	return section{
		{name: "listen", restart: true, kind: plain(&c.Admin.Address, parseListen),
			doc: "host:port, or unix:PATH."},
		{name: "token_file", restart: true, kind: plain(&c.Admin.TokenFile, filePathOrEmpty),
			doc: "File with the token that Authorization: Bearer must carry. Needed where listen is not loopback. The file is read again when it changes."},
		c.Admin.socketMode(), c.Admin.maxConnections(),
		{name: "pprof", kind: boolean(&c.Pprof),
			doc: "Whether profiles of the running program are at /debug/pprof/, for go tool pprof."},
	}
}

func (l *Listener) socketMode() field {
	show := func(mode fs.FileMode) any { return fmt.Sprintf("%04o", mode) }
	return field{name: "socket_mode", restart: true, kind: scalar[fs.FileMode]{&l.SocketMode, parseSocketMode, show},
		doc: `Mode of the file where listen is a Unix socket: "0600" lets this user connect, "0660" the file's group too.`}
}

func (l *Listener) maxConnections() field {
	return field{name: "max_connections", restart: true, kind: integer(&l.MaxConnections, 1, maxConcurrency),
		doc: "Connections that may be open at once. Beyond it the one that has been idle for longest is closed; where none is idle, 503."}
}

func (c *Config) spoolFields() section {
	s := &c.Spool
	return section{
		{name: "dir", restart: true, kind: plain(&s.Dir, filePath),
			doc: "The spool's directory, relative to the working directory."},
		{name: "max_bytes", restart: true, kind: size(&s.MaxBytes, mib),
			doc: "Bound of the disk space; beyond it ingest answers 503."},
		{name: "max_event_bytes", restart: true, kind: size(&s.MaxEventBytes, 1),
			doc: "Largest body; beyond it 413. Where it is not set it shrinks with a small max_bytes."},
		{name: "max_endpoint_share", restart: true, kind: share(&s.MaxEndpointShare),
			doc: "Part of the spool that one endpoint may fill."},
		{name: "history_max_bytes", restart: true, kind: size(&s.HistoryMaxBytes, 0),
			doc: "Bound of summaries, attempts and what waits for Postgres. Where it is not set it shrinks with a small max_bytes."},
		{name: "encryption_key_files", kind: list[string]{&s.EncryptionKeyFiles, filePath, asString},
			doc: "Files with a key each, newest first: 32 random bytes, as base64, hexadecimal digits or as they are. Targets, headers, bodies and kept answers are encrypted with the first (AES-256-GCM), and read with any; what is under an older one is rewritten in the background."},
		{name: "dedupe_window", restart: true, kind: duration(&s.DedupeWindow, 0),
			doc: "How long a repeated Idempotency-Key or event ID is recognised."},
		{name: "delivered_retention", restart: true, kind: duration(&s.DeliveredRetention, 0),
			doc: "How long the summary of a delivered event is kept."},
		{name: "dead_letter_retention", restart: true, kind: duration(&s.DeadLetterRetention, time.Second),
			doc: "How long a dead letter is kept."},
	}
}

func (c *Config) syncFields() section {
	s := &c.Sync
	return section{
		{name: "dsn", kind: secret{p: &s.DSN, check: noControl, emptyIfUnset: true},
			doc: "Connection string; empty for no sync. A secret. Read from POSTERN_SYNC_DSN where it is not set."},
		{name: "schema", restart: true, kind: plain(&s.Schema, parseSchema), doc: "The schema that holds the tables."},
		{name: "interval", restart: true, kind: duration(&s.Interval, 100*time.Millisecond), doc: "Time between two batches."},
		{name: "labels", restart: true, kind: labelSet{&s.Labels}, doc: "What tells this instance from others."},
		{name: "payloads", restart: true, kind: word(&s.Payloads, "none", "dead_letters", "all"),
			doc: "Which bodies go to Postgres too: none, dead_letters or all."},
		{name: "retention", restart: true, kind: duration(&s.Retention, time.Minute), doc: "How long rows stay in Postgres."},
		{name: "max_backlog_bytes", restart: true, kind: size(&s.MaxBacklogBytes, 0),
			doc: "Bound of what waits for Postgres, within spool.history_max_bytes. Where it is not set it shrinks with that."},
	}
}

// parseSchema wants a name that needs no quotes in SQL.
func parseSchema(text string) (string, error) {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return "", fmt.Errorf("%s is not a schema name; use a-z, 0-9 and _, not beginning with a digit", quote(text))
		}
	}
	if text == "" || len(text) > 40 || strings.HasPrefix(text, "pg_") {
		return "", fmt.Errorf("%s is not a schema name; it has 1 to 40 characters and does not begin with pg_", quote(text))
	}
	return text, nil
}
