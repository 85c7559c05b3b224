package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

func (l *lab) aboutLatency() string {
	return fmt.Sprintf("open loop, %.0f requests/s on %d connections for %v, POST of %d bytes, delivered at once. To the receiver: from the time at "+
		"which a request was meant to leave until the receiver has read it. Reference: the median of one fdatasync of 4 KiB appended to a file "+
		"beside the spool, with nothing else going on; what is left of it is the difference.", l.sizes.rate, l.sizes.conns, l.sizes.open, l.sizes.body)
}

// latency measures acknowledgements and receipts at a rate that does not depend on how fast they come.
func (l *lab) latency(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	const disk, kept = "disk", "postern"
	t, err := l.turns(ctx, l.syncs(1), contender{kept, func(ctx context.Context) (figures, error) { return l.paced(ctx, receiver) }})
	if err != nil {
		return err
	}
	l.add(
		row{Name: "acknowledgement p50", Unit: "ms", Value: over(t.of(kept, "p50"))}.above("fsync", t.of(disk, "p50")),
		row{Name: "acknowledgement p99", Unit: "ms", Value: over(t.of(kept, "p99"))}.above("fsync", t.of(disk, "p50")).atMost(3),
		row{Name: "to the receiver p50", Unit: "ms", Value: over(t.of(kept, "receipt p50"))}.above("fsync", t.of(disk, "p50")).atMost(2),
		row{Name: "to the receiver p99", Unit: "ms", Value: over(t.of(kept, "receipt p99"))}.above("fsync", t.of(disk, "p50")),
		row{Name: "the disk's syncs", Unit: "/s", Value: over(t.of(disk, "rate"))},
	)
	return nil
}

// paced sends at the fixed rate to a Postern that delivers.
func (l *lab) paced(ctx context.Context, receiver *child) (figures, error) {
	p, end, err := l.startPostern(ctx, receiver.addr, setup{})
	if err != nil {
		return nil, err
	}
	defer end()
	var got received
	if err := receiver.ask("reset", &got); err != nil {
		return nil, err
	}
	spec := l.accepting()
	spec.For, spec.Rate, spec.Stamp = l.sizes.open, l.sizes.rate, true
	r, f, err := drive(ctx, p.server(), spec)
	if err != nil {
		return nil, err
	}
	if got, err = receiver.await(ctx, r.Sent); err != nil {
		return nil, err
	}
	f["p50"], f["p99"] = milliseconds(r.Latency.P50), milliseconds(r.Latency.P99)
	f["receipt p50"], f["receipt p99"] = milliseconds(got.Latency.P50), milliseconds(got.Latency.P99)
	return f, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *lab) aboutLone() string {
	return "one connection that waits for each answer; the endpoint is paused. Reference: two fdatasync of 4 KiB appended to a file, which is " +
		"about what one commit asks of the disk, and nothing else: no HTTP, no index."
}

// lone measures one client that waits for each answer, beside the disk alone.
func (l *lab) lone(ctx context.Context) error {
	spec := loadSpec{Conns: 1, Body: l.sizes.body, Want: http.StatusAccepted, For: l.sizes.load, Warm: l.sizes.warm}
	const disk, kept = "disk", "postern"
	t, err := l.turns(ctx, l.syncs(2), contender{kept, func(ctx context.Context) (f figures, err error) {
		err = l.withPaused(setup{})(ctx, func(s server) error {
			r, _, err := drive(ctx, s, spec)
			f = figures{"p50": milliseconds(r.Latency.P50), "p99": milliseconds(r.Latency.P99)}
			return err
		})
		return f, err
	}})
	if err != nil {
		return err
	}
	l.add(
		row{Name: "lone client p50", Unit: "ms", Value: over(t.of(kept, "p50"))}.beside("2 fsyncs", t.of(disk, "p50")).atMost(1.3),
		row{Name: "lone client p99", Unit: "ms", Value: over(t.of(kept, "p99"))}.beside("2 fsyncs", t.of(disk, "p99")),
	)
	return nil
}

// syncs is the contender disk: so many syncs one after the other are one sample.
func (l *lab) syncs(atOnce int) contender {
	return contender{"disk", func(context.Context) (figures, error) {
		took, err := syncTimes(l.dir, l.sizes.syncs, atOnce)
		return figures{"p50": milliseconds(took.P50), "p99": milliseconds(took.P99), "rate": 1 / took.P50.Seconds()}, err
	}}
}
