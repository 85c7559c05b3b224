package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// durable are settings of a Postgres that keeps what it says it has.
var durable = []string{"fsync=on", "synchronous_commit=on"}

// rowsPerEvent of the history of an event that is delivered at once: it was accepted, and it was delivered.
const rowsPerEvent = 2

func (l *lab) aboutSync() string {
	return fmt.Sprintf("%s events over %d connections as under DELIVER, with sync.dsn and a local Postgres (fsync on, on the same processors) that gets all "+
		"rows meanwhile, and is asked afterwards whether it has each of them. Reference: the same without sync.dsn. To Postgres: the history of as many "+
		"events that were delivered while Postgres was away, two rows each, from SIGHUP until the last one is marked as kept; Postern is idle otherwise.",
		number(float64(l.sizes.deliver)), l.sizes.conns)
}

// sync compares delivering with a Postgres that is told of all of it with delivering without one, and measures how fast
// history goes there.
func (l *lab) sync(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	const without, with, carried = "without", "with", "carried"
	return l.withDatabase(ctx, durable, func(d *database) error {
		t, err := l.turns(ctx,
			l.through(without, receiver, l.byPostern(setup{}), l.burst()),
			contender{with, func(ctx context.Context) (figures, error) { return l.passSynced(ctx, d, receiver) }},
			contender{carried, func(ctx context.Context) (figures, error) { return l.carry(ctx, d, receiver) }})
		if err != nil {
			return err
		}
		l.add(
			row{Name: "accepted and delivered, sync on", Unit: "/s", Value: over(t.of(with, "rate"))}.beside("off", t.of(without, "rate")).atLeast(0.85),
			row{Name: "CPU per delivered, sync on", Unit: "µs", Value: over(t.of(with, "cpu"))}.beside("off", t.of(without, "cpu")),
			row{Name: "attempts to Postgres", Unit: "/s", Value: over(t.of(carried, "rate"))}.atLeast(20_000),
			row{Name: "CPU per attempt carried", Unit: "µs", Value: over(t.of(carried, "cpu"))},
		)
		return nil
	})
}

// passSynced delivers with a Postgres that is told of it, from when Postern has reached it.
func (l *lab) passSynced(ctx context.Context, d *database, receiver *child) (figures, error) {
	if err := d.empty(ctx); err != nil {
		return nil, err
	}
	p, end, err := l.startPostern(ctx, receiver.addr, setup{more: d.sync()})
	if err != nil {
		return nil, err
	}
	defer end()
	if err := p.until(ctx, "reach Postgres", func(c counts) bool { return c.Sync.Connected }); err != nil {
		return nil, err
	}
	f, err := pass(ctx, receiver, p.server(), l.burst())
	if err != nil {
		return nil, err
	}
	if err := p.synced(ctx, rowsPerEvent*l.sizes.deliver); err != nil {
		return nil, err
	}
	return f, d.holds(ctx, l.sizes.deliver)
}

// carry delivers events while Postgres is away, then tells Postern where it is, and times until everything is there.
func (l *lab) carry(ctx context.Context, d *database, receiver *child) (figures, error) {
	if err := d.empty(ctx); err != nil {
		return nil, err
	}
	p, end, err := l.startPostern(ctx, receiver.addr, setup{more: d.away()})
	if err != nil {
		return nil, err
	}
	defer end()
	n := l.sizes.deliver
	if _, err := pass(ctx, receiver, p.server(), l.burst()); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	if err := p.configure(d.sync()); err != nil {
		return nil, err
	}
	var took time.Duration
	f, err := p.server().cost(func() (int64, error) {
		began := time.Now()
		err := p.cmd.Process.Signal(syscall.SIGHUP)
		if err == nil {
			err = p.synced(ctx, rowsPerEvent*n)
		}
		took = time.Since(began)
		return n, err
	})
	if err != nil {
		return nil, err
	}
	f["rate"] = float64(n) / took.Seconds()
	return f, d.holds(ctx, n)
}

// synced waits until Postgres has so many rows of this process.
func (p *postern) synced(ctx context.Context, rows int64) error {
	return p.until(ctx, fmt.Sprintf("bring %d rows to Postgres", rows), func(c counts) bool { return c.Sync.RowsTotal >= rows || c.Sync.Rejected > 0 })
}
