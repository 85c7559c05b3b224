package syncer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"postern/spool"
	"postern/spool/spooltest"
	"postern/sync/pgstore"
	"postern/sync/pgtest"
	"postern/sync/syncer"
)

// BenchmarkCatchUp carries the history of 60,000 delivered events, two rows each, from a spool into a local server that
// syncs its log, at the speed that leaves room for deliveries.
func BenchmarkCatchUp(b *testing.B) {
	const events = 60_000
	server := pgtest.Start(b, "fsync=on")
	for b.Loop() {
		b.StopTimer()
		db := pgtest.On(b, server.DSN())
		s := fullOutbox(b, events)
		open := func(ctx context.Context) (syncer.Store, error) {
			return pgstore.Open(ctx, pgstore.Config{DSN: db.DSN, Schema: db.Schema, Instance: s.InstanceID()})
		}
		store, err := open(b.Context())
		if err == nil {
			err = store.Migrate(b.Context())
			store.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		w := syncer.New(syncer.Config{Interval: 10 * time.Millisecond}, syncer.Parts{
			Outbox:   s,
			Open:     open,
			Endpoint: func(string) (syncer.Endpoint, bool) { return syncer.Endpoint{MaxAttempts: 5}, true },
		})
		var running sync.WaitGroup
		b.StartTimer()
		running.Go(func() { w.Run(ctx) })
		for tick := time.NewTicker(5 * time.Millisecond); s.Stats().OutboxRows > 0; <-tick.C {
		}
		b.StopTimer()
		cancel()
		running.Wait()
		b.StartTimer()
	}
	b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds(), "attempts/s")
}

// fullOutbox is a spool with the history of n delivered events, accepted and delivered as they are: some hundred at a time.
func fullOutbox(b *testing.B, n int) *spool.Spool {
	cfg := spooltest.Config(b)
	cfg.Outbox, cfg.MaxBytes = true, 1<<30
	s := spooltest.Open(b, cfg)
	const atOnce = 500
	for from := 0; from < n; from += atOnce {
		var appends, finished sync.WaitGroup
		for i := from; i < from+atOnce; i++ {
			appends.Go(func() {
				name := fmt.Sprintf("https://partner-%d.example", i%20)
				ev := &spool.Event{ID: fmt.Sprintf("evt_0190a6c0-7b2c-7def-8123-%012d", i), Endpoint: name, Target: name + "/", Method: "GET", AcceptedAt: time.Now()}
				if _, err := s.Append(b.Context(), ev); err != nil {
					b.Error(err)
				}
			})
		}
		appends.Wait()
		for i := range 20 {
			leases, _, err := s.Lease(fmt.Sprintf("https://partner-%d.example", i), time.Now(), atOnce, 1<<30)
			if err != nil {
				b.Fatal(err)
			}
			finished.Add(len(leases))
			for _, l := range leases {
				a := &spool.Attempt{Number: 1, StartedAt: time.Now(), Duration: time.Duration(i+1) * 10 * time.Millisecond, StatusCode: 200}
				s.Finish(l, spool.Result{Attempt: a, Verdict: spool.VerdictDelivered, Done: func(error) { finished.Done() }})
			}
		}
		finished.Wait()
	}
	return s
}
