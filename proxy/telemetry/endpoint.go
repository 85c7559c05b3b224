package telemetry

import (
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

const (
	// maxAdHoc is how many ad hoc endpoints have a label value of their own (contract section 9).
	maxAdHoc = 100
	// adHocLabel is what the others share.
	adHocLabel = "ad_hoc"
	// maxReasons bounds postern_rejected_total. Ingest has about a dozen reasons.
	maxReasons = 50
)

// endpointSeries are the handles of one endpoint, made once so that counting is a map look-up and an atomic add. All of
// them exist from the endpoint's first sign of life, at zero: a counter that appears with the value 1 is no increase
// to Prometheus, and the first dead letter is the one an alert is for.
type endpointSeries struct {
	label                                   string
	accepted                                *metrics.Counter
	delivered, transient, permanent         *metrics.Counter
	exhausted, expired, permanentDead, gone *metrics.Counter
	otherOutcome, otherReason               func() *metrics.Counter
	duration, age                           *metrics.PrometheusHistogram
}

// Configured makes the series of these endpoints, so that they are on the page before their first event. Call it at
// the start and after a reload. Endpoints that left keep their series until the process ends: their events may still
// be in flight, a counter must not go back, and the configuration bounds their number.
func (m *Metrics) Configured(endpoints ...string) {
	for _, name := range endpoints {
		m.endpoint(name)
	}
}

// endpoint finds or makes the series under which name is counted. Ad hoc endpoints beyond the first maxAdHoc are not
// remembered, so that no number of hosts takes memory.
func (m *Metrics) endpoint(name string) *endpointSeries {
	m.mu.RLock()
	s := m.lookupLocked(name)
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.lookupLocked(name); s != nil {
		return s
	}
	if isAdHoc(name) {
		if m.adHoc >= maxAdHoc {
			name = adHocLabel
		} else {
			m.adHoc++
		}
	}
	s = m.newSeries(name)
	m.endpoints[name] = s
	return s
}

func (m *Metrics) lookupLocked(name string) *endpointSeries {
	if s := m.endpoints[name]; s != nil {
		return s
	}
	if m.adHoc >= maxAdHoc && isAdHoc(name) {
		return m.endpoints[adHocLabel]
	}
	return nil
}

// isAdHoc tells the name of an ad hoc endpoint, which is an origin, from a configured one, which cannot hold a slash.
func isAdHoc(name string) bool { return strings.Contains(name, "://") }

func (m *Metrics) newSeries(name string) *endpointSeries {
	of := func(f *family, pairs ...string) *metrics.Counter {
		return f.counter(labels(append([]string{"endpoint", name}, pairs...)...))
	}
	only := labels("endpoint", name)
	return &endpointSeries{
		label:         name,
		accepted:      m.accepted.counter(only),
		delivered:     of(m.attempts, "outcome", OutcomeDelivered),
		transient:     of(m.attempts, "outcome", OutcomeTransient),
		permanent:     of(m.attempts, "outcome", OutcomePermanent),
		exhausted:     of(m.dead, "reason", ReasonExhausted),
		expired:       of(m.dead, "reason", ReasonExpired),
		permanentDead: of(m.dead, "reason", ReasonPermanent),
		gone:          of(m.dead, "reason", ReasonGone),
		otherOutcome:  func() *metrics.Counter { return of(m.attempts, "outcome", Other) },
		otherReason:   func() *metrics.Counter { return of(m.dead, "reason", Other) },
		duration:      m.duration.histogram(only, durationBuckets),
		age:           m.age.histogram(only, ageBuckets),
	}
}

func (s *endpointSeries) outcome(word string) *metrics.Counter {
	switch word {
	case OutcomeDelivered:
		return s.delivered
	case OutcomeTransient:
		return s.transient
	case OutcomePermanent:
		return s.permanent
	}
	return s.otherOutcome()
}

func (s *endpointSeries) reason(word string) *metrics.Counter {
	switch word {
	case ReasonExhausted:
		return s.exhausted
	case ReasonExpired:
		return s.expired
	case ReasonPermanent:
		return s.permanentDead
	case ReasonGone:
		return s.gone
	}
	return s.otherReason()
}

func (m *Metrics) rejection(reason string) *metrics.Counter {
	m.mu.RLock()
	c := m.reasons[reason]
	m.mu.RUnlock()
	if c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reasons) >= maxReasons {
		reason = Other
	}
	c = m.rejected.counter(labels("reason", reason))
	m.reasons[reason] = c
	return c
}
