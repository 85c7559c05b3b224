package telemetry

import (
	"fmt"
	"io"
	"testing"
	"time"
)

// BenchmarkPageOfManyEndpoints is a scrape with 10,000 endpoints that were all in use.
func BenchmarkPageOfManyEndpoints(b *testing.B) {
	m := New(Config{})
	for i := range 10_000 {
		name := fmt.Sprint("partner-", i)
		m.Accepted(name)
		m.Attempt(name, OutcomeDelivered, time.Duration(i)*time.Millisecond)
		m.Delivered(name, time.Second)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.WritePrometheus(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
