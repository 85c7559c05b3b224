package app

import (
	"context"
	"log/slog"
	"strings"

	"postern/limiter"
	"postern/proxy/redact"
	"postern/proxy/scheduler"
	"postern/proxy/telemetry"
	"postern/spool"
)

// observer tells what happened: one log line and one set of counters for each attempt, after it is on disk.
type observer struct {
	log     *slog.Logger
	metrics *telemetry.Metrics
	book    *book
}

// Told counts and logs one attempt, or one event given up.
func (o *observer) Told(t scheduler.Told) {
	event := t.Lease.Event
	if t.Outcome.Attempt.Number > 0 {
		o.metrics.Attempt(event.Endpoint, string(t.Result), t.Outcome.Attempt.Duration)
	}
	switch t.Verdict {
	case spool.VerdictDelivered:
		o.metrics.Delivered(event.Endpoint, t.Recorded.Sub(event.AcceptedAt))
	case spool.VerdictDead:
		o.metrics.DeadLetter(event.Endpoint, t.Reason)
	}
	level, message := slog.LevelDebug, "delivered"
	switch t.Verdict {
	case spool.VerdictRetry:
		level, message = slog.LevelInfo, "attempt failed"
	case spool.VerdictDead:
		level, message = slog.LevelWarn, "dead letter"
	}
	if o.log.Enabled(context.Background(), level) {
		o.log.LogAttrs(context.Background(), level, message, o.attrs(t)...)
	}
}

func (o *observer) attrs(t scheduler.Told) []slog.Attr {
	event, attempt := t.Lease.Event, t.Outcome.Attempt
	attrs := []slog.Attr{slog.String("event_id", event.ID), slog.String("endpoint", event.Endpoint)}
	if attempt.Number > 0 {
		attrs = append(attrs, slog.Int("attempt", attempt.Number), slog.Float64("duration_ms", float64(attempt.Duration.Microseconds())/1000))
	}
	if attempt.StatusCode > 0 {
		attrs = append(attrs, slog.Int("status_code", attempt.StatusCode))
	}
	if t.Outcome.Class != "" {
		attrs = append(attrs, slog.String("error", string(t.Outcome.Class)))
	}
	if t.Reason != "" {
		attrs = append(attrs, slog.String("reason", t.Reason))
	}
	if t.Verdict == spool.VerdictRetry {
		attrs = append(attrs, slog.Time("next_attempt_at", t.Next))
	}
	if shown := o.queryShown(event); shown != "" {
		attrs = append(attrs, slog.String("query", shown))
	}
	return attrs
}

// queryShown is the part of the query that query_keys_in_logs lets through.
func (o *observer) queryShown(event *spool.Event) string {
	keys := o.book.config().QueryKeysInLogs
	if len(keys) == 0 {
		return ""
	}
	_, query, _ := strings.Cut(event.Target, "?")
	return redact.Query(query, keys)
}

// Changed logs what a person wants to know of an endpoint's breaker.
func (o *observer) Changed(endpoint string, s limiter.Snapshot) {
	o.log.Info("endpoint state", "endpoint", endpoint, "breaker", s.Breaker.String(), "consecutive_failures", s.ConsecutiveFailures,
		"cooldown_seconds", s.Cooldown.Seconds(), "paused", s.Paused, "throttled", s.Throttled)
}
