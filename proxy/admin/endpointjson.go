package admin

import "time"

// EndpointView is an endpoint as its parts know it. Times that are not set are zero.
type EndpointView struct {
	Name       string
	Configured bool   // false for ad hoc ones and for those that left the configuration
	URL        string // of a configured one, without query and user info; else the origin
	Breaker    BreakerView
	Paused     bool
	// PauseReason and PausedAt say why and since when.
	PauseReason string
	PausedAt    time.Time
	Limiter     LimiterView
	Queue       QueueView
	// P50, P95 and P99 are over the last 24 h, of attempts that got response headers or ended as timeout.
	P50, P95, P99 time.Duration
	Samples       int
	// ShareFull tells that new events are refused, since those that are there have used up the endpoint's share of the spool.
	ShareFull bool
	// TLSError is why the TLS files as they are now are not in force; empty if they are.
	TLSError string
}

// BreakerView is the state of an endpoint's breaker.
type BreakerView struct {
	State               string // closed, half_open or open
	ConsecutiveFailures int
	FailureThreshold    int           // the one in force: lower while the endpoint is slow
	OpenedAt            time.Time     // zero while closed
	Cooldown            time.Duration // the one in force
}

// LimiterView is what holds an endpoint back beside its breaker.
type LimiterView struct {
	Limits         []LimitView
	ThrottledUntil time.Time // set by a 429 with Retry-After
	NextAllowed    time.Time // when time alone lets the next request go; zero: now, or after an outcome or a person
	HeldBy         string    // why nothing may leave now; empty where something may
	Concurrency    int       // attempts at once, in force now
	MaxConcurrency int       // what the policy allows
}

// LimitView is one entry of limits with its use.
type LimitView struct {
	Limit  int
	Window time.Duration
	Used   int
}

// QueueView is what waits for an endpoint. The counts are exclusive.
type QueueView struct {
	Pending, AwaitingRetry, InFlight, DeadLetter int64
}

type endpointJSON struct {
	Name        string      `json:"name"`
	Configured  bool        `json:"configured"`
	URL         string      `json:"url"`
	Breaker     breakerJSON `json:"breaker"`
	Paused      bool        `json:"paused"`
	PauseReason *string     `json:"pause_reason"`
	PausedAt    *time.Time  `json:"paused_at"`
	Limiter     limiterJSON `json:"limiter"`
	QueueDepth  int64       `json:"queue_depth"` // everything that is not finished
	Queue       queueJSON   `json:"queue"`
	P50         *float64    `json:"p50_ms"` // null without samples
	P95         *float64    `json:"p95_ms"`
	P99         *float64    `json:"p99_ms"`
	Samples     int         `json:"sample_count"`
	ShareFull   bool        `json:"share_full"`
	TLSError    *string     `json:"tls_error"` // null unless the TLS files cannot be used
}

type breakerJSON struct {
	State               string     `json:"state"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	FailureThreshold    int        `json:"failure_threshold"`
	OpenedAt            *time.Time `json:"opened_at"`
	Cooldown            float64    `json:"cooldown_seconds"`
}

type limiterJSON struct {
	Limits         []limitJSON `json:"limits"`
	ThrottledUntil *time.Time  `json:"throttled_until"`
	NextAllowed    *time.Time  `json:"next_allowed_at"`
	HeldBy         *string     `json:"held_by"`
	Concurrency    int         `json:"concurrency"`
	MaxConcurrency int         `json:"max_concurrency"`
}

type limitJSON struct {
	Limit  int     `json:"limit"`
	Window float64 `json:"window_seconds"`
	Used   int     `json:"used"`
}

type queueJSON struct {
	Pending       int64 `json:"pending"`
	AwaitingRetry int64 `json:"awaiting_retry"`
	InFlight      int64 `json:"in_flight"`
	DeadLetter    int64 `json:"dead_letter"`
}

func (v *EndpointView) json() endpointJSON {
	out := endpointJSON{
		Name:        v.Name,
		Configured:  v.Configured,
		URL:         v.URL,
		Paused:      v.Paused,
		PauseReason: orNull(v.PauseReason),
		PausedAt:    stamp(v.PausedAt),
		Breaker: breakerJSON{
			v.Breaker.State, v.Breaker.ConsecutiveFailures, v.Breaker.FailureThreshold,
			stamp(v.Breaker.OpenedAt), v.Breaker.Cooldown.Seconds(),
		},
		Limiter: limiterJSON{
			make([]limitJSON, 0, len(v.Limiter.Limits)), stamp(v.Limiter.ThrottledUntil), stamp(v.Limiter.NextAllowed),
			orNull(v.Limiter.HeldBy), v.Limiter.Concurrency, v.Limiter.MaxConcurrency,
		},
		QueueDepth: v.Queue.Pending + v.Queue.AwaitingRetry + v.Queue.InFlight,
		Queue: queueJSON{
			v.Queue.Pending, v.Queue.AwaitingRetry, v.Queue.InFlight, v.Queue.DeadLetter,
		},
		Samples:   v.Samples,
		ShareFull: v.ShareFull,
		TLSError:  orNull(v.TLSError),
	}
	for _, limit := range v.Limiter.Limits {
		out.Limiter.Limits = append(out.Limiter.Limits, limitJSON{limit.Limit, limit.Window.Seconds(), limit.Used})
	}
	if v.Samples > 0 {
		p50, p95, p99 := milliseconds(v.P50), milliseconds(v.P95), milliseconds(v.P99)
		out.P50, out.P95, out.P99 = &p50, &p95, &p99
	}
	return out
}
