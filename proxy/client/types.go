package client

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// Status is GET status.
type Status struct {
	Pipeline
	SpoolMaxBytes int64           `json:"spool_max_bytes"` // zero where an older Postern answers
	Sync          json.RawMessage `json:"sync"`
	InstanceID    string          `json:"instance_id"`
	Version       string          `json:"version"`
	Ready         bool            `json:"ready"`
	Reasons       []string        `json:"reasons"` // why not, each a sentence
}

// Pipeline is what GET status counts. The fleet's view pipeline_status counts the same, and pgstore.Pipeline converts to it.
type Pipeline struct {
	Pending           int64      `json:"pending"`
	AwaitingRetry     int64      `json:"awaiting_retry"`
	InFlight          int64      `json:"in_flight"`
	DeadLetter        int64      `json:"dead_letter"`
	DeliveredLastHour int64      `json:"delivered_last_hour"`
	FailedLastHour    int64      `json:"failed_last_hour"`
	OldestPending     *time.Time `json:"oldest_pending"`
	AvgDeliveryMS     *float64   `json:"avg_delivery_ms_last_hour"` // nil where nothing was delivered
	SpoolBytes        int64      `json:"spool_bytes"`
}

// Event is an event as lists show it; Attempts and what follows it are there where one event was asked for.
type Event struct {
	ID             string    `json:"id"`
	Endpoint       string    `json:"endpoint"`
	State          string    `json:"state"`
	Method         string    `json:"method"`
	URL            string    `json:"url"`
	AttemptCount   int       `json:"attempt_count"`
	MaxAttempts    int       `json:"max_attempts"`
	AcceptedAt     time.Time `json:"accepted_at"`
	NextAttemptAt  time.Time `json:"next_attempt_at"`
	DeliveredAt    time.Time `json:"delivered_at"`
	DeadAt         time.Time `json:"dead_at"`
	DeadReason     string    `json:"dead_reason"`
	LastError      string    `json:"last_error"`
	LastStatusCode int       `json:"last_status_code"`
	Size           int64     `json:"size"`

	Attempts []Attempt `json:"attempts"`

	// What follows is there where it was asked to be revealed.
	Target       string  `json:"target"`
	Headers      []Field `json:"headers"`
	Body         string  `json:"body"`
	BodyEncoding string  `json:"body_encoding"`
	Answer       *Kept   `json:"answer"`
}

// Field is one header field of an event.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Kept is what is kept of the last failed attempt's response.
type Kept struct {
	StatusCode   int    `json:"status_code"`
	Location     string `json:"location"`
	Body         string `json:"body"`
	BodyEncoding string `json:"body_encoding"`
}

// Attempt is one try of an event.
type Attempt struct {
	Number     int       `json:"number"`
	StartedAt  time.Time `json:"started_at"`
	DurationMs float64   `json:"duration_ms"`
	StatusCode int       `json:"status_code"`
	Error      string    `json:"error"`
}

// EventPage is one page of events.
type EventPage struct {
	Events []Event `json:"events"`
	Next   string  `json:"next_cursor"`
}

// EventFilter selects events; zero fields select everything.
type EventFilter struct {
	State, Endpoint string
	Limit           int
	Cursor          string
}

func (f EventFilter) values() url.Values {
	v := url.Values{}
	set(v, "state", f.State)
	set(v, "endpoint", f.Endpoint)
	set(v, "cursor", f.Cursor)
	if f.Limit > 0 {
		v.Set("limit", strconv.Itoa(f.Limit))
	}
	return v
}

// EndpointList is GET endpoints.
type EndpointList struct {
	Endpoints []Endpoint `json:"endpoints"`
}

// Activity is GET activity, without the single minutes.
type Activity struct {
	DeliveredPerMinute float64 `json:"delivered_per_minute"` // events
	FailedPerMinute    float64 `json:"failed_per_minute"`    // attempts
}

// LatencyList is GET latency, without the single half hours.
type LatencyList struct {
	Endpoints []Latency `json:"endpoints"`
}

// Latency tells whether an endpoint is getting slower.
type Latency struct {
	Name  string `json:"name"`
	Trend Trend  `json:"trend"`
}

// Trend is the p95 of the last hour beside the usual one, in milliseconds.
type Trend struct {
	State      string  `json:"state"` // unknown, steady, slowing or faster
	RecentP95  float64 `json:"recent_p95_ms"`
	EarlierP95 float64 `json:"earlier_p95_ms"`
}

// Endpoint is the receiving side with its breaker, limiter, queue and latencies.
type Endpoint struct {
	Name        string   `json:"name"`
	Configured  bool     `json:"configured"`
	URL         string   `json:"url"`
	Breaker     Breaker  `json:"breaker"`
	Paused      bool     `json:"paused"`
	PauseReason string   `json:"pause_reason"`
	Limiter     Limiter  `json:"limiter"`
	Queue       Queue    `json:"queue"`
	P50Ms       *float64 `json:"p50_ms"`
	P95Ms       *float64 `json:"p95_ms"`
	P99Ms       *float64 `json:"p99_ms"`
	SampleCount int64    `json:"sample_count"`
	ShareFull   bool     `json:"share_full"` // new events are refused: its own fill its share of the spool
	TLSError    string   `json:"tls_error"`
}

// Breaker is a circuit breaker's state.
type Breaker struct {
	State               string     `json:"state"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	FailureThreshold    int        `json:"failure_threshold"`
	OpenedAt            *time.Time `json:"opened_at"`
	CooldownSeconds     float64    `json:"cooldown_seconds"`
}

// Limiter is what holds an endpoint back besides the breaker.
type Limiter struct {
	Limits         []Limit    `json:"limits"`
	ThrottledUntil *time.Time `json:"throttled_until"`
	NextAllowedAt  *time.Time `json:"next_allowed_at"`
	HeldBy         string     `json:"held_by"` // why nothing may leave now; empty where something may
	Concurrency    int        `json:"concurrency"`
}

// Limit is one sliding window.
type Limit struct {
	Limit         int     `json:"limit"`
	WindowSeconds float64 `json:"window_seconds"`
	Used          int     `json:"used"`
}

// Queue is what waits for an endpoint.
type Queue struct {
	Pending       int64 `json:"pending"`
	AwaitingRetry int64 `json:"awaiting_retry"`
	InFlight      int64 `json:"in_flight"`
	DeadLetter    int64 `json:"dead_letter"`
}

// LetterFilter selects dead letters. Since and Until are RFC 3339 times or durations back, such as 24h.
type LetterFilter struct {
	Endpoint string `json:"endpoint,omitempty"`
	Status   int    `json:"status,omitempty"`
	Error    string `json:"error,omitempty"`
	Since    string `json:"since,omitempty"`
	Until    string `json:"until,omitempty"`
}

func (f LetterFilter) values() url.Values {
	v := url.Values{}
	set(v, "endpoint", f.Endpoint)
	set(v, "error", f.Error)
	set(v, "since", f.Since)
	set(v, "until", f.Until)
	if f.Status != 0 {
		v.Set("status", strconv.Itoa(f.Status))
	}
	return v
}

func set(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}

// LetterPage is one page of dead letters.
type LetterPage struct {
	DeadLetters []Event `json:"dead_letters"`
	Next        string  `json:"next_cursor"`
}

// AnalysisReport is GET dead-letters/analysis.
type AnalysisReport struct {
	Endpoints []Analysis `json:"endpoints"`
}

// Analysis sums up one endpoint's dead letters.
type Analysis struct {
	Endpoint          string    `json:"endpoint"`
	DeadCount         int64     `json:"dead_count"`
	PrimaryError      string    `json:"primary_error"`
	PrimaryStatusCode int       `json:"primary_status_code"`
	FirstDead         time.Time `json:"first_dead"`
	LastDead          time.Time `json:"last_dead"`
	AvgAttempts       float64   `json:"avg_attempts"`
	Findings          []Finding `json:"findings"`
}

// Finding is a pattern with what to do about it.
type Finding struct {
	Pattern string `json:"pattern"`
	Count   int64  `json:"count"`
	Message string `json:"message"`
	Action  string `json:"action"`
}

// Bulk is the body of a replay or a purge.
type Bulk struct {
	LetterFilter
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is events per second as a number ("2.5") or as a limit is written ("100/1m"); empty replays all at once.
	Rate string `json:"rate,omitempty"`
}

// BulkResult is the answer to a replay or a purge.
type BulkResult struct {
	Matched  int64 `json:"matched"`
	Replayed int64 `json:"replayed"`
	Purged   int64 `json:"purged"`
	DryRun   bool  `json:"dry_run"`
	// Started tells that a paced replay runs in the background, under ID.
	Started bool   `json:"started"`
	ID      string `json:"id"`
	// Since and Until are between which moments a dry run counted, as RFC 3339 times; Since may be empty.
	Since string `json:"since"`
	Until string `json:"until"`
}

// PacedReplay is a replay with a rate, under way or ended.
type PacedReplay struct {
	ID       string `json:"id"`
	State    string `json:"state"` // running, done, stopped or failed
	Matched  int64  `json:"matched"`
	Replayed int64  `json:"replayed"`
	Skipped  int64  `json:"skipped"` // were no dead letters any more when their turn came
	Error    string `json:"error"`
}

// SpoolKeys is GET spool/keys. Names of keys tell nothing about them; "none" stands for no encryption.
type SpoolKeys struct {
	Newest    string   `json:"newest"`
	InUse     []string `json:"in_use"`
	Rewriting bool     `json:"rewriting"`
	CopyOwed  bool     `json:"copy_owed"` // free pages of the file may still hold what was there before
}

// RefusedList is GET sync/refused.
type RefusedList struct {
	Refused []Refused `json:"refused"`
	Total   int64     `json:"total"`
}

// Refused is a row that the central Postgres refused.
type Refused struct {
	EventID   string    `json:"event_id"`
	Endpoint  string    `json:"endpoint"`
	State     string    `json:"state"`
	Attempt   int       `json:"attempt"`
	Cause     string    `json:"cause"`
	RefusedAt time.Time `json:"refused_at"`
}

// SyncRetried is the answer to POST sync/retry.
type SyncRetried struct {
	Retried int64 `json:"retried"`
}
