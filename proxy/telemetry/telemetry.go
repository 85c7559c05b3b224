// Package telemetry counts what Postern does and writes it as Prometheus text (contract section 9). It is the only
// package that knows the metrics library.
//
// It promises valid exposition text for any endpoint name, a bounded number of series whatever targets the application
// comes up with, and counting that neither formats nor allocates once an endpoint was counted. It keeps its own registry:
// two Metrics in one process do not meet. It leaves out where the gauges come from (a Source is asked at every scrape)
// and who may read them (package admin).
package telemetry

import (
	"bufio"
	"io"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// The outcomes of an attempt: label values of postern_attempts_total.
const (
	OutcomeDelivered = "delivered"
	OutcomeTransient = "transient" // failed, and retried while attempts are left
	OutcomePermanent = "permanent" // failed in a way that no retry mends
)

// The reasons for a dead letter: label values of postern_dead_letters_total, the same words as package spool's.
const (
	ReasonExhausted = "exhausted"
	ReasonExpired   = "expired"
	ReasonPermanent = "permanent"
	ReasonGone      = "gone"
)

// Other takes the counts of words that are not in the contract, so that a new word can never grow the page without end.
const Other = "other"

// Config says what to expose beside the counters.
type Config struct {
	// Version is the value of postern_build_info's label.
	Version string
	// Source is asked for the gauges at every scrape; nil leaves them out.
	Source Source
	// RejectReasons are shown at zero from the start, so that the first refusal is already an increase.
	RejectReasons []string
}

// Metrics is the counters of one Postern. All methods may be called at any time from any goroutine.
type Metrics struct {
	source Source

	rejected  *family
	single    []*family // those that have no label, in the order of the page
	buildInfo *family

	commit   *metrics.PrometheusHistogram
	syncRows *metrics.Counter

	mu        sync.RWMutex // guards the maps and adHoc
	endpoints map[string]*endpointSeries
	reasons   map[string]*metrics.Counter // of postern_rejected_total
	adHoc     int                         // ad hoc endpoints that have a label value of their own
}

// New makes an empty set of metrics.
func New(cfg Config) *Metrics {
	commit := newFamily("postern_spool_commit_seconds", histogram, "Time that one spool commit took, both syncs included.")
	syncRows := newFamily("postern_sync_rows_total", counter, "Rows written to the central store.")
	m := &Metrics{
		source:    cfg.Source,
		rejected:  newFamily("postern_rejected_total", counter, "Requests that ingest refused, by reason."),
		buildInfo: newFamily("postern_build_info", gauge, "Always 1; the label names the running version."),
		single:    []*family{commit, syncRows},
		commit:    commit.histogram("", commitBuckets),
		syncRows:  syncRows.counter(""),
		endpoints: make(map[string]*endpointSeries),
		reasons:   make(map[string]*metrics.Counter),
	}
	m.buildInfo.set.GetOrCreateGauge(m.buildInfo.name+labels("version", cfg.Version), nil).Set(1)
	for _, reason := range cfg.RejectReasons {
		m.rejection(reason)
	}
	return m
}

// Accepted counts one event that got its 202.
func (m *Metrics) Accepted(endpoint string) { m.endpoint(endpoint).accepted.Add(1) }

// Rejected counts one request that ingest refused. Reasons are a short fixed set of words; beyond maxReasons of them
// the rest is counted as Other.
func (m *Metrics) Rejected(reason string) { m.rejection(reason).Inc() }

// Attempt counts one attempt that ended, with how (Outcome…) and how long it took.
func (m *Metrics) Attempt(endpoint, outcome string, d time.Duration) {
	s := m.endpoint(endpoint)
	count(s.outcomes[:], outcomeWords[:], outcome)
	s.duration.add(durationBuckets, max(d, 0).Seconds())
}

// Delivered records how old an event was when its receiver said yes.
func (m *Metrics) Delivered(endpoint string, age time.Duration) {
	// A clock that was set back must not lose the count, nor take from the sum.
	m.endpoint(endpoint).age.add(ageBuckets, max(age, 0).Seconds())
}

// DeadLetter counts one event that was given up, with why (Reason…).
func (m *Metrics) DeadLetter(endpoint, reason string) {
	count(m.endpoint(endpoint).reasons[:], reasonWords[:], reason)
}

// Commit records how long one spool commit took.
func (m *Metrics) Commit(d time.Duration) { m.commit.Update(d.Seconds()) }

// SyncRows counts rows that the central store has taken.
func (m *Metrics) SyncRows(n int) { m.syncRows.Add(max(n, 0)) }

// The families that have series for every endpoint.
var (
	outcomeLabels, reasonLabels = wordLabels("outcome", outcomeWords[:]), wordLabels("reason", reasonWords[:])

	accepted = endpointFamily{"postern_accepted_total", counter, "Events accepted and synced to disk.",
		func(page []byte, name string, s *endpointSeries) []byte {
			return line(page, name, s.pairs, "", s.accepted.Load())
		}}
	attempts = endpointFamily{"postern_attempts_total", counter, "Delivery attempts, by how they ended.",
		func(page []byte, name string, s *endpointSeries) []byte {
			return words(page, name, s, outcomeLabels, s.outcomes[:])
		}}
	duration = endpointFamily{"postern_attempt_duration_seconds", histogram, "Time from the start of an attempt to its response headers or its failure.",
		func(page []byte, name string, s *endpointSeries) []byte {
			return durationBuckets.histogramLines(page, name, s, &s.duration)
		}}
	age = endpointFamily{"postern_delivery_age_seconds", histogram, "Time from the acceptance of an event to its delivery.",
		func(page []byte, name string, s *endpointSeries) []byte {
			return ageBuckets.histogramLines(page, name, s, &s.age)
		}}
	dead = endpointFamily{"postern_dead_letters_total", counter, "Events given up, by reason.",
		func(page []byte, name string, s *endpointSeries) []byte {
			return words(page, name, s, reasonLabels, s.reasons[:])
		}}
)

// pageBuffer is how much of the page is written at once: with many thousands of endpoints it has tens of megabytes.
const pageBuffer = 64 << 10

// WritePrometheus writes the whole page: Postern's own metrics, then those of the Go runtime and the process. It writes
// piece by piece; after an error what was written is the beginning of a page.
func (m *Metrics) WritePrometheus(w io.Writer) error {
	page := bufio.NewWriterSize(w, pageBuffer)
	endpoints := m.all()
	accepted.write(page, endpoints)
	m.rejected.write(page)
	for _, f := range []endpointFamily{attempts, duration, age, dead} {
		f.write(page, endpoints)
	}
	if m.source != nil {
		m.writeGauges(page, m.source.Gauges())
	}
	for _, f := range m.single {
		f.write(page)
	}
	m.buildInfo.write(page)
	metrics.WriteProcessMetrics(page)
	metrics.WriteFDMetrics(page)
	return page.Flush()
}
