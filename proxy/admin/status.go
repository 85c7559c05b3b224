package admin

import (
	"net/http"
	"time"
)

// statusJSON is the one object of GET status; its names are the contract's and those of the view pipeline_status.
type statusJSON struct {
	Pending       int64 `json:"pending"`
	AwaitingRetry int64 `json:"awaiting_retry"`
	InFlight      int64 `json:"in_flight"`
	DeadLetter    int64 `json:"dead_letter"`
	// DeliveredLastHour counts events, FailedLastHour attempts.
	DeliveredLastHour int64      `json:"delivered_last_hour"`
	FailedLastHour    int64      `json:"failed_last_hour"`
	OldestPending     *time.Time `json:"oldest_pending"`
	// AvgDelivery is of the attempts that delivered; null where the last hour has none.
	AvgDelivery *float64 `json:"avg_delivery_ms_last_hour"`
	SpoolBytes  int64    `json:"spool_bytes"`
	// SpoolMax is what the files may take: spool.max_bytes.
	SpoolMax   int64  `json:"spool_max_bytes"`
	Sync       any    `json:"sync"`
	InstanceID string `json:"instance_id"`
	Version    string `json:"version"`
	// Reasons are those of /readyz: empty while Ready.
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"`
}

func (h *Handler) status(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	return reply{body: h.statusNow()}, nil
}

func (h *Handler) statusNow() statusJSON {
	stats, reasons := h.parts.Spool.Stats(), whyNot(h.parts.Ready)
	out := statusJSON{
		Pending:           stats.Pending,
		AwaitingRetry:     stats.Failed,
		InFlight:          stats.Leased,
		DeadLetter:        stats.DeadLetter,
		DeliveredLastHour: stats.LastHour.Delivered,
		FailedLastHour:    stats.LastHour.Failed,
		OldestPending:     stamp(stats.OldestPending),
		SpoolBytes:        stats.FileBytes,
		SpoolMax:          stats.MaxBytes,
		Sync:              map[string]any{"enabled": false},
		InstanceID:        h.parts.InstanceID,
		Version:           h.parts.Version,
		Ready:             len(reasons) == 0,
		Reasons:           reasons,
	}
	if n := stats.LastHour.Delivered; n > 0 {
		average := milliseconds(stats.LastHour.Duration / time.Duration(n))
		out.AvgDelivery = &average
	}
	if h.parts.Sync != nil {
		out.Sync = h.parts.Sync()
	}
	return out
}

// stamp is a time as the API shows it: UTC, null where there is none.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// milliseconds keeps three decimals: what is stored has microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// orNull is nil for the zero value, which JSON shows as null.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
