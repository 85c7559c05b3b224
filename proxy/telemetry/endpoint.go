package telemetry

import (
	"slices"
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
	// Names that differ only in bytes that are no UTF-8 are one label.
	label := strings.ToValidUTF8(name, replacement)
	if s = m.endpoints[label]; s == nil {
		s = newSeries(label)
		m.endpoints[label] = s
	}
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

// all are the series of every endpoint in the order of the page.
func (m *Metrics) all() []*endpointSeries {
	m.mu.RLock()
	list := make([]*endpointSeries, 0, len(m.endpoints))
	for name, s := range m.endpoints {
		if name == s.label { // else it is another way to write the same label
			list = append(list, s)
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(list, func(a, b *endpointSeries) int { return strings.Compare(a.label, b.label) })
	return list
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
