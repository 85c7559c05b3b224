package main

import (
	"context"
	"fmt"
	"time"
)

// usualQueue is how a queue in Postgres is usually set up: a pool of connections for the application, and three workers.
func (d *database) usualQueue(receiver string, batch int) queueSpec {
	return queueSpec{DSN: d.dsn, Schema: d.schema, Receiver: receiver, Writers: 16, Workers: 3, Batch: batch, Poll: 100 * time.Millisecond}
}

func (l *lab) aboutQueue() string {
	return fmt.Sprintf("POST of %d bytes over %d connections, closed loop, from the first request to the last receipt: %s events through Postern, %s through "+
		"a queue in a local Postgres with fsync on: an INSERT with its own commit for each event over 16 connections; three workers that poll with "+
		"FOR UPDATE SKIP LOCKED, claim a row (or ten) in a transaction, send each over a kept connection, UPDATE it, and commit. Prepared "+
		"statements, and an index on what waits.", l.sizes.body, l.sizes.conns, number(float64(l.sizes.deliver)), number(float64(l.sizes.queue)))
}

// queue compares accepting, keeping and delivering with the same by a queue in Postgres.
func (l *lab) queue(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	const one, ten, kept = "a row at a time", "ten rows at a time", "postern"
	fewer := l.burst()
	fewer.Count = l.sizes.queue
	return l.withDatabase(ctx, durable, func(d *database) error {
		t, err := l.turns(ctx, l.through(one, receiver, d.byQueue(1), fewer), l.through(kept, receiver, l.byPostern(setup{}), l.burst()),
			l.through(ten, receiver, d.byQueue(10), fewer))
		if err != nil {
			return err
		}
		rate := over(t.of(kept, "rate"))
		l.add(
			row{Name: "accepted and delivered", Unit: "/s", Value: rate}.beside("queue, "+one, t.of(one, "rate")).atLeast(25),
			row{Name: "the same, beside batches", Unit: "/s", Value: rate}.beside("queue, "+ten, t.of(ten, "rate")),
		)
		return nil
	})
}

// byQueue is the queue on an empty table, with workers that claim so many rows at once.
func (d *database) byQueue(batch int) way {
	return func(ctx context.Context, receiver string) (server, func(), error) {
		c, err := startRole(ctx, "queue", d.usualQueue(receiver, batch))
		if err != nil {
			return server{}, nil, err
		}
		return c.server("/sink"), c.stop, nil
	}
}
