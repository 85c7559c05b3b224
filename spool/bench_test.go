package spool

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkAppend(b *testing.B)       { benchmark(b, false) }
func BenchmarkAppendFinish(b *testing.B) { benchmark(b, true) }

// BenchmarkManyEndpoints measures what every scrape and every probe asks for.
func BenchmarkManyEndpoints(b *testing.B) {
	cfg := Defaults()
	cfg.Dir = b.TempDir()
	s, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	s.mu.Lock()
	for i := range 10_000 {
		s.setRow(fmt.Sprintf("https://host-%d.example", i), &endpointRow{id: uint32(i), pending: 1})
	}
	s.mu.Unlock()
	b.Run("Stats", func(b *testing.B) {
		for b.Loop() {
			_ = s.Stats()
		}
	})
	b.Run("Endpoints", func(b *testing.B) {
		for b.Loop() {
			_ = s.Endpoints()
		}
	})
}

func benchmark(b *testing.B, finish bool) {
	for _, clients := range []int{1, 128} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			cfg := Defaults()
			cfg.Dir = b.TempDir()
			cfg.MaxBytes = 8 << 30
			cfg.MaxEndpointShare = 1
			var s *Spool
			if finish {
				cfg.Committed = func(list []Committed) {
					for _, c := range list {
						s.Finish(c.Lease, Result{Verdict: VerdictDelivered, Attempt: &Attempt{Number: 1, StartedAt: time.Now(), StatusCode: 200}})
					}
				}
			}
			s, err := Open(cfg)
			if err != nil {
				b.Fatal(err)
			}
			body := []byte(strings.Repeat("x", 500))
			var n atomic.Int64
			b.SetParallelism((clients + 1) / 2)
			if clients == 1 {
				b.SetParallelism(1)
			}
			b.ReportAllocs()
			b.ResetTimer()
			run := func() {
				i := n.Add(1)
				ev := &Event{ID: fmt.Sprintf("evt_0190aaaa-%04x-7000-8000-%012x", i>>16&0xffff, i), Endpoint: "https://x.example", Method: "POST",
					Target: "https://x.example/pb?cid=1", Body: body, AcceptedAt: time.Now(),
					Headers: []Header{{"Content-Type", "application/json"}, {"User-Agent", "bench"}}}
				if _, err := s.Append(b.Context(), ev); err != nil {
					b.Error(err)
				}
			}
			if clients == 1 {
				for b.Loop() {
					run()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						run()
					}
				})
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			if err := s.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}
