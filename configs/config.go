package configs

import (
	"log/slog"
	"net/url"
	"time"

	"postern/proxy/target"
)

// Config is the whole configuration, checked and resolved. Treat it as read-only: a reload makes a new one.
type Config struct {
	// File is the configuration file that was read; empty where there was none.
	File string
	// Blank tells that no file, or one without a single key, was read: what a file that was cut off also looks like.
	Blank bool
	// Dev tells that --dev was given.
	Dev bool

	Listen Listener // ingest
	Admin  Listener
	Pprof  bool     // whether the admin listener gives profiles of the program
	Probes Listener // its Address is empty where there is none

	ShutdownDelay time.Duration
	ShutdownGrace time.Duration
	Log           Log
	// Concurrency bounds the attempts at once, all endpoints together.
	Concurrency int
	Spool       Spool
	// Defaults is the policy of ad hoc endpoints that no match covers.
	Defaults  Policy
	Endpoints []Endpoint
	Targets   Targets
	// OutboundProxy is nil where requests go out directly. It may hold user info: do not print it.
	OutboundProxy   *url.URL
	QueryKeysInLogs []string
	Sync            Sync

	outboundProxy string // the text that OutboundProxy was parsed from
	lookup        lookup
}

// BlankAdvice is what to say about a file without a single key.
const BlankAdvice = "was it cut off? Write {} into it where the defaults are meant"

// Log says how the program logs.
type Log struct {
	Level  slog.Level
	Format string // json or text
}

// Spool holds the bounds of the store on disk. Sizes are in bytes.
type Spool struct {
	Dir                 string
	MaxBytes            int64
	MaxEventBytes       int64
	MaxEndpointShare    float64 // in (0, 1]
	HistoryMaxBytes     int64
	EncryptionKeyFiles  []string // newest first
	EncryptionKeys      [][]byte // what is in them, 32 bytes each; they are secrets
	DedupeWindow        time.Duration
	DeliveredRetention  time.Duration
	DeadLetterRetention time.Duration
}

// Targets says where ad hoc events may go.
type Targets struct {
	AdHoc        bool
	Allow        []string // CIDR, IP address, host name or *.wildcard, lower case
	AllowPrivate bool
}

// Sync is the central Postgres. DSN is empty where there is none; it is a secret.
type Sync struct {
	DSN             string
	Schema          string
	Interval        time.Duration
	Labels          map[string]string
	Payloads        string // none, dead_letters or all
	Retention       time.Duration
	MaxBacklogBytes int64
}

// Endpoint is a named endpoint with its complete policy: the defaults overlaid with its own values.
type Endpoint struct {
	Name string
	URL  target.Target
	// Match has the prefixes of ad hoc targets that this policy governs too: same origin, whole path segments.
	Match  []target.Target
	Policy Policy
}
