package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// many is the path of the endpoints of a Postern that has many, without their numbers.
const many = "e"

// manyEndpoints are further endpoints, all at the same receiver.
func manyEndpoints(n int, receiver string) setup {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, named, fmt.Sprint(many, i), receiver)
	}
	return setup{endpoints: b.String()}
}

// overMany is a fresh Postern with n endpoints beside the usual one.
func (l *lab) overMany(n int) way {
	return func(ctx context.Context, receiver string) (server, func(), error) {
		return l.byPostern(manyEndpoints(n, receiver))(ctx, receiver)
	}
}

// spreadOver sends a load to that many endpoints in turns.
func (s loadSpec) spreadOver(n int) loadSpec {
	s.Path, s.Spread = "/to/"+many, n
	return s
}

func (l *lab) aboutEndpoints() string {
	return fmt.Sprintf("%s events over %d connections as under DELIVER, spread evenly over %s named endpoints of one receiver. Reference: as many to a single one of them.",
		number(float64(l.sizes.deliver)), l.sizes.conns, number(float64(l.sizes.endpoints)))
}

// endpoints compares delivering to many endpoints with delivering to one.
func (l *lab) endpoints(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	const one, all = "one endpoint", "many"
	t, err := l.turns(ctx,
		l.through(one, receiver, l.overMany(1), l.burst().spreadOver(1)),
		l.through(all, receiver, l.overMany(l.sizes.endpoints), l.burst().spreadOver(l.sizes.endpoints)))
	if err != nil {
		return err
	}
	l.add(
		row{Name: "accepted and delivered, many endpoints", Unit: "/s", Value: over(t.of(all, "rate"))}.beside(one, t.of(one, "rate")).atLeast(0.8),
		row{Name: "CPU per delivered, many endpoints", Unit: "µs", Value: over(t.of(all, "cpu"))}.beside(one, t.of(one, "cpu")),
	)
	return nil
}

// deadEndpoint is one that nobody answers for.
const deadEndpoint = "dead"

func (l *lab) aboutDead() string {
	return fmt.Sprintf("%s events over %d connections to a healthy endpoint as under DELIVER, while %s events of %d bytes wait for another one that refuses "+
		"connections. Reference: the same without those.", number(float64(l.sizes.deliver)), l.sizes.conns, number(float64(l.sizes.dead)), l.sizes.body)
}

// dead compares delivering beside a dead endpoint that has a backlog with delivering without one.
func (l *lab) dead(ctx context.Context) error {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	const alone, beside = "none", "a dead one"
	t, err := l.turns(ctx,
		l.through(alone, receiver, l.byPostern(l.withDead()), l.burst()),
		l.through(beside, receiver, l.besideDead, l.burst()))
	if err != nil {
		return err
	}
	l.add(row{Name: "accepted and delivered, one endpoint dead", Unit: "/s", Value: over(t.of(beside, "rate"))}.beside(alone, t.of(alone, "rate")).atLeast(0.95))
	return nil
}

func (l *lab) withDead() setup { return setup{endpoints: fmt.Sprintf(named, deadEndpoint, nobody)} }

// besideDead is a fresh Postern with the events that wait for the dead endpoint.
func (l *lab) besideDead(ctx context.Context, receiver string) (server, func(), error) {
	p, end, err := l.startPostern(ctx, receiver, l.withDead())
	if err != nil {
		return server{}, nil, err
	}
	spec := l.burst()
	spec.Addr, spec.Path, spec.Count = p.ingest, "/to/"+deadEndpoint, l.sizes.dead
	_, err = runLoad(ctx, spec)
	if err == nil {
		err = p.settle(ctx)
	}
	var c counts
	if err == nil {
		c, err = p.counts()
	}
	if err == nil && c.waiting() != l.sizes.dead {
		err = fmt.Errorf("%d events wait for the dead endpoint, not %d", c.waiting(), l.sizes.dead)
	}
	if err != nil {
		end()
		return server{}, nil, err
	}
	return p.server(), end, nil
}

func (l *lab) aboutShrink() string {
	return fmt.Sprintf("%s events of %s bytes are accepted by a paused endpoint, then all of them are delivered. Reference: what the files of the "+
		"spool took together before the first delivery; then what they take when they have not changed for %v. One round: it does not depend on speed.",
		number(float64(l.sizes.shrink)), number(shrinkBody), l.sizes.rest)
}

// shrink compares the spool's size after a backlog with its peak.
func (l *lab) shrink(ctx context.Context) (err error) {
	receiver, err := startRole(ctx, "receiver", nil)
	if err != nil {
		return err
	}
	defer receiver.stop()
	p, end, err := l.startPostern(ctx, receiver.addr, setup{})
	if err != nil {
		return err
	}
	defer end()
	watch := watchSize(p.spool())
	defer func() { err = errors.Join(err, watch.stop()) }()
	l.say("shrink: filling with %s events", number(float64(l.sizes.shrink)))
	if err := p.act("pause"); err != nil {
		return err
	}
	spec := loadSpec{Addr: p.ingest, Path: sinkPath, Conns: l.sizes.conns, Body: shrinkBody, Want: http.StatusAccepted, Count: l.sizes.shrink}
	if _, err := runLoad(ctx, spec); err != nil {
		return err
	}
	peak := watch.peak() // later ones hold the copy of a compaction too, which would flatter
	l.say("shrink: draining")
	if err := p.act("resume"); err != nil {
		return err
	}
	if _, err := receiver.await(ctx, l.sizes.shrink); err != nil {
		return err
	}
	after, err := watch.rest(ctx, l.sizes.rest)
	if err != nil {
		return err
	}
	l.add(row{Name: "spool after the backlog", Unit: "MB", Value: over([]float64{after})}.beside("peak", []float64{peak}).atMost(0.1))
	return nil
}
