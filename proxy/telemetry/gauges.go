package telemetry

import (
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Source is asked for the state of things at every scrape. It must answer fast and from any goroutine.
type Source interface{ Gauges() Gauges }

// SourceFunc makes a Source of a function.
type SourceFunc func() Gauges

// Gauges calls f.
func (f SourceFunc) Gauges() Gauges { return f() }

// BreakerState is the value of postern_breaker_state.
type BreakerState int

// The states of a breaker, as numbers: higher is worse.
const (
	BreakerClosed   BreakerState = 0
	BreakerHalfOpen BreakerState = 1
	BreakerOpen     BreakerState = 2
)

// ParseBreakerState reads the words that the API and the tables use; any other word is taken for closed.
func ParseBreakerState(word string) BreakerState {
	switch word {
	case "half_open":
		return BreakerHalfOpen
	case "open":
		return BreakerOpen
	}
	return BreakerClosed
}

// EndpointGauges is the state of one endpoint.
type EndpointGauges struct {
	Endpoint string
	Breaker  BreakerState
	Paused   bool
	Waiting  int64 // events that wait for an attempt
}

// Gauges is a snapshot of the state of things. The counts of events are exclusive: an event in flight is counted as
// that alone.
type Gauges struct {
	Pending, InFlight, Failed, Delivered, DeadLetter int64
	// OldestPending is the age of the oldest event that was never tried; zero where there is none.
	OldestPending time.Duration
	// Ready is what /readyz says; Writable and Full are what the spool says.
	Ready, Writable, Full bool
	// Concurrency is how many attempts may be in flight.
	Concurrency int
	// ReloadRefused says that the last configuration that was to be put in force was not valid.
	ReloadRefused bool
	// SpoolBytes is the size of the files, MaxBytes what it may be, FreeBytes what events may still take of that.
	SpoolBytes, FreeBytes, MaxBytes int64
	// SalvageLost, HistoryDropped and SetAside are records lost by salvage, rows dropped for room, and records that
	// could not be decoded, since the spool was made.
	SalvageLost, HistoryDropped, SetAside int64
	Endpoints                             []EndpointGauges
	// LogDropped counts log lines that nobody read in time.
	LogDropped int64
	// SyncLag is the age of the oldest row that waits for the central store. SyncRejected counts rows set aside
	// because the store refused them.
	SyncLag      time.Duration
	SyncRejected int64
}

func (m *Metrics) writeGauges(page io.Writer, g Gauges) {
	writeHead(page, "postern_events", gauge, "Events in the spool, by state.")
	for _, row := range []struct {
		state string
		n     int64
	}{
		{"pending", g.Pending}, {"in_flight", g.InFlight}, {"failed", g.Failed},
		{"delivered", g.Delivered}, {"dead_letter", g.DeadLetter},
	} {
		fmt.Fprintf(page, "postern_events%s %d\n", labels("state", row.state), row.n)
	}
	for _, row := range []struct {
		name, kind, help string
		v                float64
	}{
		{"postern_ready", gauge, "1 while /readyz says 200, 0 while it says 503.", btof(g.Ready)},
		{"postern_concurrency_limit", gauge, "Attempts that may be in flight at once, all endpoints together.", float64(g.Concurrency)},
		{"postern_config_last_reload_successful", gauge, "0 where the configuration that was last reloaded was refused.", btof(!g.ReloadRefused)},
		{"postern_time_seconds", gauge, "The clock that signatures, delays and TTLs go by: compare it with timestamp().", float64(time.Now().UnixMilli()) / 1000},
		{"postern_oldest_pending_seconds", gauge, "Age of the oldest event that was never tried.", max(g.OldestPending, 0).Seconds()},
		{"postern_spool_bytes", gauge, "Size of the spool's files.", float64(g.SpoolBytes)},
		{"postern_spool_free_bytes", gauge, "What events may still take of spool.max_bytes; the disk may have less.", float64(g.FreeBytes)},
		{"postern_spool_max_bytes", gauge, "What the spool's files may use: spool.max_bytes.", float64(g.MaxBytes)},
		{"postern_spool_writable", gauge, "0 while the disk refuses commits: events are refused, and nothing is sent.", btof(g.Writable)},
		{"postern_spool_full", gauge, "1 while there is no room for an event of the size that was refused.", btof(g.Full)},
		{"postern_spool_salvage_lost_total", counter, "Records that salvaging a damaged spool could not read.", float64(g.SalvageLost)},
		{"postern_spool_history_dropped_total", counter, "Rows of history dropped to stay within history_max_bytes.", float64(g.HistoryDropped)},
		{"postern_spool_set_aside_total", counter, "Records that could not be decoded and were set aside.", float64(g.SetAside)},
		{"postern_log_lines_dropped_total", counter, "Log lines dropped because their reader stalled or died.", float64(g.LogDropped)},
		{"postern_sync_lag_seconds", gauge, "Age of the oldest row that waits for the central store; 0 without sync.", max(g.SyncLag, 0).Seconds()},
		{"postern_sync_rejected_rows_total", counter, "Rows that the central store refused and that were set aside.", float64(g.SyncRejected)},
	} {
		writeHead(page, row.name, row.kind, row.help)
		metrics.WriteGaugeFloat64(page, row.name, row.v)
	}
	m.writeEndpointGauges(page, g.Endpoints)
}

// writeEndpointGauges shows the worst of the endpoints that share a label value, and the sum of what waits for them: the page must not name a series twice.
func (m *Metrics) writeEndpointGauges(page io.Writer, endpoints []EndpointGauges) {
	if len(endpoints) == 0 {
		return
	}
	var order []string
	worst := make(map[string]EndpointGauges, len(endpoints))
	for _, e := range endpoints {
		key := labels("endpoint", m.endpoint(e.Endpoint).label)
		seen, ok := worst[key]
		if !ok {
			order = append(order, key)
		}
		worst[key] = EndpointGauges{Breaker: max(seen.Breaker, e.Breaker), Paused: seen.Paused || e.Paused, Waiting: seen.Waiting + e.Waiting}
	}
	writeHead(page, "postern_breaker_state", gauge, "State of the endpoint's breaker: 0 closed, 1 half_open, 2 open.")
	for _, key := range order {
		fmt.Fprintf(page, "postern_breaker_state%s %d\n", key, worst[key].Breaker)
	}
	writeHead(page, "postern_endpoint_waiting", gauge, "Events that wait for an attempt at the endpoint, first or further.")
	for _, key := range order {
		fmt.Fprintf(page, "postern_endpoint_waiting%s %d\n", key, worst[key].Waiting)
	}
	writeHead(page, "postern_endpoint_paused", gauge, "1 where the endpoint is paused, by a person or by a 410 answer.")
	for _, key := range order {
		fmt.Fprintf(page, "postern_endpoint_paused%s %d\n", key, btoi(worst[key].Paused))
	}
}

func btof(b bool) float64 { return float64(btoi(b)) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
