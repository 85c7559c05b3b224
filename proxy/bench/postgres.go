package main

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

// durable are settings of a Postgres that keeps what it says it has.
var durable = []string{"fsync=on", "synchronous_commit=on"}

// rowsPerEvent of the history of an event that is delivered at once: it was accepted, and it was delivered.
const rowsPerEvent = 2

// postgresRows measures how fast the history of delivered events goes from a spool to Postgres.
func (l *lab) postgresRows(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	var rate, cpu []float64
	err = l.withDatabase(ctx, durable, func(d *database) error {
		for round := range l.rounds {
			l.say("postgres-rows, round %d of %d", round+1, l.rounds)
			r, c, err := l.carry(ctx, d, receiver)
			if err != nil {
				return err
			}
			rate, cpu = append(rate, r), append(cpu, c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.add(
		row{Name: "attempts to Postgres", Unit: "/s", Value: over(rate),
			What: fmt.Sprintf("the history of %s delivered events, two rows each, from the outbox into a local Postgres that syncs its log; Postern is idle otherwise",
				number(float64(l.sizes.deliver)))}.atLeast(20_000),
		row{Name: "CPU per attempt carried", Unit: "µs", Value: over(cpu), What: "user and system time of Postern during that"},
	)
	return nil
}

// carry delivers events while Postgres is away, then tells Postern where it is, and times until everything is there.
func (l *lab) carry(ctx context.Context, d *database, receiver *child) (rate, cpu float64, err error) {
	if err := d.empty(ctx); err != nil {
		return 0, 0, err
	}
	p, end, err := l.startPostern(ctx, receiver.addr, d.away())
	if err != nil {
		return 0, 0, err
	}
	defer end()
	n := l.sizes.deliver
	if _, _, err := l.through(ctx, receiver, server{p.ingest, sinkPath, p.pid()}, http.StatusAccepted); err != nil {
		return 0, 0, err
	}
	if err := p.settle(); err != nil {
		return 0, 0, err
	}
	if err := p.configure(d.sync()); err != nil {
		return 0, 0, err
	}
	before, err := cpuOf(p.pid())
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return 0, 0, err
	}
	if err := p.synced(ctx, rowsPerEvent*n); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	after, err := cpuOf(p.pid())
	if err != nil {
		return 0, 0, err
	}
	return float64(n) / took.Seconds(), float64((after - before).Microseconds()) / float64(n), d.holds(ctx, n)
}

// synced waits until Postgres has so many rows of this process.
func (p *postern) synced(ctx context.Context, rows int64) error {
	limit, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for {
		c, err := p.counts()
		switch {
		case err != nil:
			return err
		case c.Sync.Rejected > 0:
			return fmt.Errorf("%d rows were refused", c.Sync.Rejected)
		case c.Sync.RowsTotal >= rows:
			return nil
		}
		if err := sleep(limit, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d rows have reached Postgres: %w", c.Sync.RowsTotal, rows, err)
		}
	}
}

// postgresDeliver compares delivering with a Postgres that is told of all of it with delivering without one.
func (l *lab) postgresDeliver(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	var with, without, cpu, alone []float64
	err = l.withDatabase(ctx, durable, func(d *database) error {
		for round := range l.rounds {
			l.say("postgres-deliver, round %d of %d", round+1, l.rounds)
			r, c, err := l.throughPostern(ctx, receiver)
			if err != nil {
				return err
			}
			without, alone = append(without, r), append(alone, c)
			if r, c, err = l.throughSynced(ctx, d, receiver); err != nil {
				return err
			}
			with, cpu = append(with, r), append(cpu, c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s events on %d connections, first request to last receipt, the syncer at work meanwhile; Postgres on the same processors",
		number(float64(l.sizes.deliver)), l.sizes.conns)
	l.add(
		row{Name: "delivered, with sync", Unit: "/s", Value: over(with), What: what}.beside("without sync", without).ratioAtLeast(0.85),
		row{Name: "CPU per delivered, with sync", Unit: "µs", Value: over(cpu), What: "user and system time of Postern, same load"}.beside("without sync", alone),
	)
	return nil
}

func (l *lab) throughSynced(ctx context.Context, d *database, receiver *child) (rate, cpu float64, err error) {
	if err := d.empty(ctx); err != nil {
		return 0, 0, err
	}
	p, end, err := l.startPostern(ctx, receiver.addr, d.sync())
	if err != nil {
		return 0, 0, err
	}
	defer end()
	for range 1000 {
		c, err := p.counts()
		if err != nil {
			return 0, 0, err
		}
		if c.Sync.Connected {
			break
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
	rate, cpu, err = l.through(ctx, receiver, server{p.ingest, sinkPath, p.pid()}, http.StatusAccepted)
	if err != nil {
		return 0, 0, err
	}
	if err := p.synced(ctx, rowsPerEvent*l.sizes.deliver); err != nil {
		return 0, 0, err
	}
	return rate, cpu, d.holds(ctx, l.sizes.deliver)
}
